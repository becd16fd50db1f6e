//! Whoever administers a store's servers, from a thread without a runtime: the nemesis has none.

use std::{future::Future, io, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

/// How long a server that runs may take for a word of an operator's.
const PATIENCE: Duration = Duration::from_secs(20);

/// An operator: a runtime of its own.
#[derive(Debug)]
pub(super) struct Operator(Runtime);

impl Operator {
    pub(super) fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Self)
    }

    /// Waits for the end of something, though not for ever.
    pub(super) fn wait<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let waited = self.0.block_on(async { timeout(PATIENCE, work).await });
        waited.unwrap_or_else(|_| Err(io::Error::other("the server does not answer its operator")))
    }

    /// Opens a store once: whoever does so first makes its tables.
    pub(super) fn open_once(&self, url: &str) -> io::Result<()> {
        self.wait(async {
            let client = leasehold::connect(url).await.map_err(io::Error::other)?;
            client.shutdown(PATIENCE).await.map(drop).map_err(io::Error::other)
        })
    }
}
