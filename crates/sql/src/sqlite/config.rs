//! What there is to choose about a SQLite store: where it is and how patient it is.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Where a SQLite store is and how it behaves. Nothing is checked or touched until [`Sqlite::open`](super::Sqlite).
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use]
pub struct SqliteConfig {
    path: PathBuf,
    busy_timeout: Duration,
}

impl SqliteConfig {
    /// A store in this file, which is created if it is missing, with its folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), busy_timeout: Duration::from_secs(5) }
    }

    /// How long one operation may wait for other processes to leave the database; 5 s unless told otherwise.
    /// After that it fails with the kind `Unavailable`, having had no effect.
    pub fn with_busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long one operation may wait for other processes.
    pub fn busy_timeout(&self) -> Duration {
        self.busy_timeout
    }
}
