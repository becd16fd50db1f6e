//! A socket whose other end must read: one that takes nothing of what is written for too long is given up.
//!
//! Without that a client that stops reading would hold its connection, and its place among the few there are, for ever.
//! Nothing is asked of one to whom nothing is to be written.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

/// A socket, and how long it may take nothing.
#[derive(Debug)]
pub(crate) struct Pressed<S> {
    socket: S,
    patience: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Pressed<S> {
    pub(crate) fn new(socket: S, patience: Duration) -> Self {
        Self { socket, patience, stuck: None }
    }

    /// What came of a write: an error if it has been stuck for too long.
    fn press<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stuck = None;
            return done;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other end does not read")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Pressed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pressed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.press(context, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.socket).poll_flush(context);
        self.press(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.socket).poll_shutdown(context);
        self.press(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        self.press(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn one_that_does_not_read_is_given_up() {
        let (ours, theirs) = tokio::io::duplex(16);
        let mut socket = Pressed::new(ours, Duration::from_millis(20));
        let error = socket.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test]
    async fn one_that_reads_gets_everything() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut socket = Pressed::new(ours, Duration::from_secs(600));
        let write = async {
            socket.write_all(&[7; 4096]).await.unwrap();
            socket.shutdown().await.unwrap();
        };
        let mut read = Vec::new();
        let ((), got) = tokio::join!(write, theirs.read_to_end(&mut read));
        assert_eq!((got.unwrap(), read), (4096, vec![7; 4096]));
    }
}
