//! A client as it should not be, for comparison: `SET name value NX PX lease`, work, `DEL name`. It does not look whose
//! lock it deletes, does not renew, and has no deadline and no fence. The checkers must find what it breaks.

use std::{io, time::Duration};

use async_trait::async_trait;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::Rival;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Naive {
    address: String,
    wire: Option<BufReader<TcpStream>>,
    held: String,
}

impl Naive {
    pub(super) fn new(url: &str) -> Self {
        let address = url.trim_start_matches("redis://").to_owned();
        Self { address, wire: None, held: String::new() }
    }

    async fn say(&mut self, words: &[&str]) -> io::Result<String> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => BufReader::new(TcpStream::connect(&self.address).await?),
        };
        let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let request = format!("*{}\r\n{}", words.len(), parts.collect::<String>());
        let answer = async {
            wire.get_mut().write_all(request.as_bytes()).await?;
            let mut line = String::new();
            wire.read_line(&mut line).await?;
            Ok::<_, io::Error>(line.trim_end().to_owned())
        };
        let answer =
            timeout(PATIENCE, answer).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Only a wire that answered is used again.
        self.wire = Some(wire);
        Ok(answer)
    }
}

#[async_trait]
impl Rival for Naive {
    /// It has no deadline of its own: it believes until it lets go.
    async fn acquire(&mut self, name: &str, lease: Duration) -> io::Result<Option<u64>> {
        let lease = lease.as_millis().to_string();
        let granted = self.say(&["SET", name, "1", "NX", "PX", &lease]).await? == "+OK";
        name.clone_into(&mut self.held);
        Ok(granted.then_some(u64::MAX))
    }

    async fn release(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.say(&["DEL", &held]).await.map(drop)
    }
}
