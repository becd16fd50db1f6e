//! Servers that know nothing of each other: what a majority of them grants is a lock of its own kind.

use super::{Redis, Setup, together, url};
use crate::servers::StartError;

/// Several primaries without replicas.
#[derive(Debug)]
pub struct Independent(Vec<Redis>);

impl Independent {
    /// Starts so many that keep nothing; five is usual.
    ///
    /// # Errors
    /// [`StartError`], of the first that did not start.
    pub fn start(count: usize) -> Result<Self, StartError> {
        Self::start_as(count, &Setup::new())
    }

    /// Starts so many as they are asked for.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(count: usize, setup: &Setup) -> Result<Self, StartError> {
        together::start(count, |_| Redis::start_as(setup)).map(Self)
    }

    /// The URL that names them all.
    pub fn url(&self) -> String {
        url("redlock+redis", &self.0)
    }

    /// Each of them.
    pub fn members(&self) -> &[Redis] {
        &self.0
    }

    /// Each of them, to crash and restart.
    pub fn members_mut(&mut self) -> &mut [Redis] {
        &mut self.0
    }
}
