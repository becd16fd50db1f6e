//! Very many who listen to the events of one console.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::Outcome;

/// What only a stream that is broken reaches.
const LIMIT: Duration = Duration::from_secs(120);

/// How a stream says that the console has looked.
const LOOKED: &str = "event: overview";

pub(crate) struct Listeners(Vec<BufReader<TcpStream>>);

impl Listeners {
    /// Opens so many streams; each has heard how things stand.
    pub(crate) async fn start(console: SocketAddr, count: usize) -> Outcome<Self> {
        let mut opened = Vec::with_capacity(count);
        for number in 0..count {
            let stream =
                open(console).await.map_err(|error| format!("stream {number} cannot be opened: {error}"))?;
            opened.push(stream);
        }
        let each = opened.into_iter().map(|stream| until(stream, LOOKED, ""));
        all(each).await.map(Self)
    }

    /// The same after so many more looks.
    pub(crate) async fn and_again(mut self, looks: usize) -> Outcome<Self> {
        for _ in 0..looks {
            self = all(self.0.into_iter().map(|stream| until(stream, LOOKED, ""))).await.map(Self)?;
        }
        Ok(self)
    }

    /// Completes when every stream has told of the change to this acquisition.
    pub(crate) async fn until_all_heard(self, id: &str) -> Outcome<()> {
        all(self.0.into_iter().map(|stream| until(stream, "data: {", id))).await.map(drop)
    }
}

async fn open(console: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let mut socket = TcpStream::connect(console).await?;
    let request = format!("GET /api/v1/events HTTP/1.1\r\nHost: {console}\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    Ok(BufReader::new(socket))
}

/// Reads up to a line that begins so and has this in it.
async fn until(mut stream: BufReader<TcpStream>, begins: &str, has: &str) -> Outcome<BufReader<TcpStream>> {
    let reading = async {
        let mut line = String::new();
        loop {
            line.clear();
            let read = stream.read_line(&mut line).await.map_err(|error| error.to_string())?;
            if read == 0 {
                return Err("a stream ended".to_owned());
            }
            if line.starts_with(begins) && line.contains(has) {
                return Ok(());
            }
        }
    };
    let read = tokio::time::timeout(LIMIT, reading).await;
    read.map_err(|_| "WRONG: a stream did not hear in time".to_owned())?.map(|()| stream)
}

async fn all(
    each: impl Iterator<Item = impl Future<Output = Outcome<BufReader<TcpStream>>>>,
) -> Outcome<Vec<BufReader<TcpStream>>> {
    futures_util::future::try_join_all(each).await
}
