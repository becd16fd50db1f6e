//! What the layer costs under `wrk` with 64 connections, on the memory store; and that on one key it serialises exactly.
//!
//! The server is this process, `wrk` another. For the cost every request has a key of its own, and with and without the layer
//! take turns, many short ones, since what else the machine does changes from second to second: what counts is the median of
//! the ratios of neighbours. The server's processor time per request is told besides; it hardly depends on what else runs.
//! `cargo bench --package leasehold-tower` runs it; `apt-get install wrk` if it is missing.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]

use std::{
    error::Error,
    fs,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::request::Parts, routing::get};
use leasehold_core::{Client, backend::Memory};
use leasehold_tower::LockLayer;
use rustix::time::{ClockId, clock_gettime};
use tokio::{net::TcpListener, task::JoinSet};

const CONNECTIONS: usize = 64;
const PAIRS: usize = 25;

/// Every request has another key than those that are under way.
const DISTINCT: &str = r#"
local number = 0
request = function()
  number = (number + 1) % 4096
  return wrk.format("GET", "/orders/" .. number)
end
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("distinct.lua");
    fs::write(&script, DISTINCT)?;
    let client = Client::new(Memory::new());
    let mut serving = JoinSet::new();
    costs(&client, &mut serving, script.to_str().ok_or("the folder for scripts has an odd name")?).await?;
    serialises(&client, &mut serving).await
}

/// Locked by the path.
fn layer(client: &Client) -> LockLayer {
    LockLayer::new(client, |request: &Parts| Some(request.uri.path().to_owned())).wait("1m")
}

async fn costs(client: &Client, serving: &mut JoinSet<()>, script: &str) -> Result<(), Box<dyn Error>> {
    let plain = Router::new().route("/orders/{id}", get(async || "done"));
    let bare = serve(serving, plain.clone()).await?;
    let locked = serve(serving, plain.layer(layer(client))).await?;
    let turn = async |server| load(server, "1", &["-s", script]).await;
    let (mut rates, mut times) = (Vec::new(), Vec::new());
    let mut throughputs = (Vec::new(), Vec::new());
    // To warm up.
    turn(bare).await?;
    turn(locked).await?;
    for pair in 0..PAIRS {
        // The second of two may find another machine than the first: so each is the first as often.
        let (without, with) = if pair % 2 == 0 {
            (turn(bare).await?, turn(locked).await?)
        } else {
            let with = turn(locked).await?;
            (turn(bare).await?, with)
        };
        rates.push((1.0 - with.rate / without.rate) * 100.0);
        times.push(with.time - without.time);
        throughputs.0.push(without.rate);
        throughputs.1.push(with.rate);
    }
    println!("{CONNECTIONS} connections, distinct keys, memory store, {PAIRS} pairs of turns of a second");
    println!("without the layer {:9.0} requests/s", spread(&mut throughputs.0)[1]);
    println!("with the layer    {:9.0} requests/s", spread(&mut throughputs.1)[1]);
    let [low, median, high] = spread(&mut rates);
    println!("costs {median:.1} % of throughput (half of the pairs: {low:.1} to {high:.1} %)");
    let [low, median, high] = spread(&mut times);
    println!("costs {median:.2} µs of the server's processor time per request ({low:.2} to {high:.2})");
    Ok(())
}

/// Everybody reads, lets all others run, and writes: whoever comes in between is lost.
async fn serialises(client: &Client, serving: &mut JoinSet<()>) -> Result<(), Box<dyn Error>> {
    let (count, served) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, answered) = (count.clone(), served.clone());
    let handler = async move || {
        let read = counted.load(Ordering::SeqCst);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        counted.store(read + 1, Ordering::SeqCst);
        answered.fetch_add(1, Ordering::SeqCst);
    };
    let app = Router::new().route("/one", get(handler)).layer(layer(client));
    let address = serve(serving, app).await?;
    let Load { rate, .. } = load(format_args!("{address}/one"), "5", &[]).await?;
    // Those that were under way when the load ended are dropped, or come to their end.
    client.idle().await;
    let (count, served) = (count.load(Ordering::SeqCst), served.load(Ordering::SeqCst));
    println!("one key: {served} requests, {count} counted, {rate:.0} requests/s");
    if count == served { Ok(()) } else { Err("the layer let two in at once".into()) }
}

/// What `wrk` found.
struct Load {
    /// Requests per second.
    rate: f64,
    /// Processor time of this process per request, in microseconds.
    time: f64,
}

/// Puts a server under load for so many seconds. Any answer but a good one is an error.
async fn load(server: impl std::fmt::Display, seconds: &str, more: &[&str]) -> Result<Load, Box<dyn Error>> {
    let mut command = Command::new("wrk");
    command.args(["-t", "1", "-c", &CONNECTIONS.to_string(), "-d", seconds, "--timeout", "60"]).args(more);
    command.arg(format!("http://{server}"));
    let before = processor_time();
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let time = processor_time().saturating_sub(before);
    let output = output.map_err(|error| format!("cannot start wrk ({error}); apt-get install wrk"))?;
    let said = String::from_utf8(output.stdout)?;
    let found = |before: &str, after: &str| {
        let line = said.lines().find(|line| line.contains(before) && line.contains(after))?;
        line.replace(before, "").split_whitespace().next()?.parse::<f64>().ok()
    };
    match (found("", "requests in"), found("Requests/sec:", "")) {
        (Some(requests), Some(rate)) if !said.contains("Non-2xx") && !said.contains("Socket errors") => {
            Ok(Load { rate, time: time.as_secs_f64() * 1e6 / requests })
        }
        _ => Err(format!("wrk says:\n{said}").into()),
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_secs(time.tv_sec.cast_unsigned()) + Duration::from_nanos(time.tv_nsec.cast_unsigned())
}

/// A quarter, the median and three quarters of them.
fn spread(figures: &mut [f64]) -> [f64; 3] {
    figures.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| figures[figures.len() * quarter / 4])
}

async fn serve(serving: &mut JoinSet<()>, app: Router) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    serving.spawn(async move { drop(axum::serve(listener, app).await) });
    Ok(address)
}
