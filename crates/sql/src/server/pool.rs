//! A few connections, lent for one statement each.
//!
//! A connection comes back when its statement was answered. One whose future was dropped half-way, or that did not
//! answer in time, does not: it is closed, and whatever the server was doing for it ends by itself.

use std::{
    fmt,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{Error, ErrorKind, Operation};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::Failure;

/// A connection that a pool can keep.
pub(crate) trait Pooled: Send + Sized + 'static {
    /// Whether it can be used again.
    fn is_alive(&self) -> bool;
}

/// Connections of one store.
pub(crate) struct Pool<C> {
    idle: Mutex<Vec<C>>,
    permits: Semaphore,
    command_timeout: Duration,
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free", &self.permits.available_permits()).finish_non_exhaustive()
    }
}

impl<C: Pooled> Pool<C> {
    /// At most so many at once, each of which has to answer in time.
    pub(crate) fn new(most: usize, command_timeout: Duration) -> Self {
        Self { idle: Mutex::default(), permits: Semaphore::new(most), command_timeout }
    }

    /// Does something on a connection, `connect`ing one more if none is idle.
    pub(crate) async fn with<T>(
        &self,
        connect: impl Future<Output = Result<C, Failure>>,
        work: impl AsyncFnOnce(&mut C) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let end = Instant::now() + self.command_timeout;
        let waited = timeout_at(end, self.permits.acquire()).await;
        let _permit = match waited {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(closed().into()),
            Err(_) => return Err(exhausted().into()),
        };
        let idle = self.idle();
        let mut connection = match idle {
            Some(connection) => connection,
            None => connect.await?,
        };
        let end = Instant::now() + self.command_timeout;
        match timeout_at(end, work(&mut connection)).await {
            Ok(done) => {
                if !connection.is_alive() {
                    // What ended one has most likely ended them all.
                    self.lock().clear();
                } else if !self.permits.is_closed() {
                    self.lock().push(connection);
                }
                done
            }
            Err(_) => Err(unanswered().into()),
        }
    }

    /// Closes all, and those that are lent when they come back.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.lock().clear();
    }

    fn idle(&self) -> Option<C> {
        let mut idle = self.lock();
        while let Some(connection) = idle.pop() {
            if connection.is_alive() {
                return Some(connection);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<C>> {
        // A panic can only come between two whole values.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, Operation::Inspect, "this store was closed; open it again")
}

fn exhausted() -> Error {
    let message =
        "all connections were busy for too long; raise connections in the store URL, or see to the server";
    Error::new(ErrorKind::Unavailable, Operation::Inspect, message)
}

fn unanswered() -> Error {
    let message = "the server did not answer in time; whether the request took effect is not known";
    Error::new(ErrorKind::Indeterminate, Operation::Inspect, message)
}
