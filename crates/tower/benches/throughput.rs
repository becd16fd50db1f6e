//! What the layer costs: requests per second over real sockets, with and without it, on the memory store.
//!
//! Server and clients share one process and one runtime, each of 64 connections asks for a key of its own. With and without
//! take turns, many short ones, since what else the machine does changes from second to second; the ratio is the median of
//! all turns. `cargo bench --package leasehold-tower` runs it.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]

#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/http/wire.rs"]
mod wire;

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use axum::{Router, http::request::Parts, routing::get};
use leasehold_core::{Client, backend::Memory};
use leasehold_tower::LockLayer;
use tokio::{net::TcpListener, task::JoinSet};

use crate::wire::Connection;

const CONNECTIONS: usize = 64;
const TURNS: usize = 31;
const TURN: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> io::Result<()> {
    let client = Client::new(Memory::new());
    let plain = Router::new().route("/orders/{id}", get(async || "done"));
    let layer = LockLayer::new(&client, |request: &Parts| Some(request.uri.path().to_owned())).wait("5s");
    let mut serving = JoinSet::new();
    let without = serve(&mut serving, plain.clone()).await?;
    let with = serve(&mut serving, plain.layer(layer)).await?;

    let (mut bare, mut locked) = (open(without).await?, open(with).await?);
    turn(&mut bare).await?;
    turn(&mut locked).await?;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let (without, with) = (turn(&mut bare).await?, turn(&mut locked).await?);
        turns.push((with / without, without, with));
    }
    turns.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (ratio, without, with) = turns[TURNS / 2];
    let (low, high) = (turns[TURNS / 4].0, turns[TURNS * 3 / 4].0);
    println!(
        "{CONNECTIONS} connections, distinct keys, memory store, median of {TURNS} pairs of turns of {TURN:?}"
    );
    println!("without the layer {without:9.0} requests/s");
    println!("with the layer    {with:9.0} requests/s");
    println!(
        "costs {:.1} % of throughput (half of the turns: {:.1} to {:.1} %)",
        cost(ratio),
        cost(high),
        cost(low)
    );
    Ok(())
}

fn cost(ratio: f64) -> f64 {
    (1.0 - ratio) * 100.0
}

async fn serve(serving: &mut JoinSet<io::Result<()>>, app: Router) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    serving.spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

async fn open(server: SocketAddr) -> io::Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(server).await?);
    }
    Ok(connections)
}

/// Requests per second that all connections together got answered.
async fn turn(connections: &mut Vec<Connection>) -> io::Result<f64> {
    let begun = Instant::now();
    let mut asking = JoinSet::new();
    for (number, mut connection) in connections.drain(..).enumerate() {
        asking.spawn(async move {
            let (path, mut answered) = (format!("/orders/{number}"), 0_u32);
            while begun.elapsed() < TURN {
                let (head, _) = connection.get(&path).await?;
                if head.status != 200 {
                    return Err(io::Error::other(format!("answered with {}", head.status)));
                }
                answered += 1;
            }
            Ok((connection, answered))
        });
    }
    let mut total = 0;
    while let Some(done) = asking.join_next().await {
        let (connection, answered) = done.map_err(io::Error::other)??;
        connections.push(connection);
        total += answered;
    }
    Ok(f64::from(total) / begun.elapsed().as_secs_f64())
}
