//! The first page of the table, as the page of the console asks for it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Outcome, WANTED};

/// Rows of the page's table.
const ROWS: usize = 100;

/// How long the first pages took.
#[derive(Default)]
pub(crate) struct Times {
    pub(crate) few: Vec<Duration>,
    pub(crate) many: Vec<Duration>,
}

impl Times {
    pub(crate) fn row(&self, what: &str) -> String {
        let [few, many] = [median(&self.few), median(&self.many)];
        let ratio = many.as_secs_f64() / few.as_secs_f64();
        let longest = self.many.iter().max().copied().unwrap_or_default();
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        format!(
            "| {what} (longest of many: {}) | {} | {} | {ratio:.2} | ≤ {WANTED} |",
            millis(longest),
            millis(few),
            millis(many)
        )
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// How long the first page takes, from the connection to its last byte, where there are so many locks.
pub(crate) async fn first(console: SocketAddr, locks: usize) -> Outcome<Duration> {
    let took = Instant::now();
    let body = get(console, ROWS).await?;
    let took = took.elapsed();
    match names(&body).len() {
        rows if rows == ROWS.min(locks) => Ok(took),
        rows => Err(format!("WRONG: the first page of {locks} locks has {rows} rows")),
    }
}

/// One of those on the first page.
pub(crate) async fn one_name(console: SocketAddr) -> Outcome<String> {
    let body = get(console, ROWS).await?;
    names(&body).first().map(|name| (*name).to_owned()).ok_or_else(|| "the first page is empty".to_owned())
}

fn names(body: &Value) -> Vec<&str> {
    body["locks"].as_array().into_iter().flatten().filter_map(|lock| lock["name"].as_str()).collect()
}

async fn get(console: SocketAddr, limit: usize) -> Outcome<Value> {
    let asked = async {
        let mut socket = TcpStream::connect(console).await?;
        let request = format!(
            "GET /api/v1/locks?limit={limit} HTTP/1.1\r\nHost: {console}\r\nConnection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await?;
        let mut read = String::new();
        socket.read_to_string(&mut read).await.map(|_| read)
    };
    let read = asked.await.map_err(|error: std::io::Error| format!("no page: {error}"))?;
    let body = read.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body)
        .map_err(|_| format!("no page, but: {}", read.lines().next().unwrap_or_default()))
}
