//! A client of HTTP/1.1 over a real socket, small enough to be dropped at any byte.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream},
    net::TcpStream,
};

/// A connection that is kept alive.
pub(crate) struct Connection(BufStream<TcpStream>);

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufStream::new(stream)))
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn get(&mut self, path: &str) -> io::Result<(Head, String)> {
        let head = self.head(path).await?;
        let mut body = Vec::new();
        if let Some(length) = head.get("content-length") {
            body.resize(length.parse().map_err(io::Error::other)?, 0);
            self.0.read_exact(&mut body).await?;
        } else {
            while let Some(chunk) = self.chunk().await? {
                body.extend(chunk);
            }
        }
        Ok((head, String::from_utf8(body).map_err(io::Error::other)?))
    }

    /// Asks, and reads the head of the answer.
    pub(crate) async fn head(&mut self, path: &str) -> io::Result<Head> {
        self.ask(path).await?;
        let first = self.line().await?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status in {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(": ") else { return Ok(Head { status, headers }) };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
    }

    /// Asks, and reads nothing.
    pub(crate) async fn ask(&mut self, path: &str) -> io::Result<()> {
        self.0.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).await?;
        self.0.flush().await
    }

    /// The next chunk of a body that comes in chunks; `None` after the last.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line().await?, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).await?;
        chunk.truncate(length);
        Ok((length > 0).then_some(chunk))
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
