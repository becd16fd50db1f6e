//! A task's connection to the register.

use std::{io, path::Path};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

/// One request at a time, one line each.
#[derive(Debug)]
pub(super) struct Connection(BufReader<UnixStream>);

impl Connection {
    pub(super) async fn open(socket: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::new(UnixStream::connect(socket).await?)))
    }

    /// The cell's value; `None` if the fence is behind.
    pub(super) async fn read(&mut self, cell: &str, owner: u64, fence: u64) -> io::Result<Option<u64>> {
        let answer = self.ask(&format!("read {cell} {owner} {fence}\n")).await?;
        Ok(answer.trim_end().parse().ok())
    }

    /// Whether the write was taken.
    pub(super) async fn write(
        &mut self,
        cell: &str,
        [owner, fence]: [u64; 2],
        [read, value]: [u64; 2],
    ) -> io::Result<bool> {
        let answer = self.ask(&format!("write {cell} {owner} {fence} {read} {value}\n")).await?;
        Ok(answer.trim_end() == "ok")
    }

    async fn ask(&mut self, line: &str) -> io::Result<String> {
        self.0.get_mut().write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        if self.0.read_line(&mut answer).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the register hung up"));
        }
        Ok(answer)
    }
}
