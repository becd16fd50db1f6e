//! Connections at rest, for the next request to take.
//!
//! A connection is taken out for a whole step and put back when all its answers are read. There are as many as there
//! were requests at one time, up to a bound; a dropped request takes its connection with it.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Result;

use crate::{
    config::MemcachedConfig,
    connection::{Connection, Reply},
    error::{Fault, closed},
};

/// How many connections are kept at rest.
const RESTING: usize = 32;

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct Pool {
    config: MemcachedConfig,
    resting: Mutex<Resting>,
}

#[derive(Debug)]
enum Resting {
    Open(Vec<Connection>),
    Closed,
}

impl Pool {
    pub(crate) fn new(config: MemcachedConfig) -> Self {
        Self { config, resting: Mutex::new(Resting::Open(Vec::new())) }
    }

    /// Reads, and gives the connection along with the answers, for a write that goes by them. A connection that rested
    /// may have died meanwhile; reading has no effect, so it is tried once more on a new one.
    pub(crate) async fn read(&self, request: &[u8], replies: usize) -> Result<(Connection, Vec<Reply>)> {
        if let Some(connection) = self.take()? {
            match connection.ask(request, replies).await {
                Err(Fault::Broken(_)) => {}
                answered => return answered.map_err(Fault::of_read),
            }
            // What died with it died with all of them.
            self.forget();
        }
        let connection = self.fresh().await?;
        connection.ask(request, replies).await.map_err(Fault::of_read)
    }

    pub(crate) fn host(&self) -> &str {
        &self.config.host
    }

    /// A new connection.
    pub(crate) async fn fresh(&self) -> Result<Connection> {
        Connection::open(&self.config).await.map_err(Fault::of_read)
    }

    /// Puts a connection to rest.
    pub(crate) fn give_back(&self, connection: Connection) {
        match &mut *self.resting() {
            Resting::Open(resting) if resting.len() < RESTING => resting.push(connection),
            _ => {}
        }
    }

    pub(crate) fn close(&self) {
        *self.resting() = Resting::Closed;
    }

    fn take(&self) -> Result<Option<Connection>> {
        match &mut *self.resting() {
            Resting::Open(resting) => Ok(resting.pop()),
            Resting::Closed => Err(closed()),
        }
    }

    fn forget(&self) {
        if let Resting::Open(resting) = &mut *self.resting() {
            drop(mem::take(resting));
        }
    }

    fn resting(&self) -> MutexGuard<'_, Resting> {
        // Nothing that could panic happens while it is locked.
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
