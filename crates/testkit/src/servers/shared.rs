//! One set of servers for all cases that run at the same time: they are isolated by their names. It ends with the last of
//! them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{StartError, start_or_skip};

/// Servers that tests of one program share; a `static`.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// None are started yet.
    #[expect(clippy::new_without_default, reason = "a static is made by a const fn")]
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// Those that run, or new ones.
    ///
    /// # Panics
    /// If they do not start.
    pub fn get(&self, start: impl FnOnce() -> Result<T, StartError>) -> Arc<T> {
        self.get_or_skip(start).expect("the server is installed")
    }

    /// Those that run, or new ones; `None`, counted aloud, if they are not installed and may be missing.
    ///
    /// # Panics
    /// As [`start_or_skip`] does.
    pub fn get_or_skip(&self, start: impl FnOnce() -> Result<T, StartError>) -> Option<Arc<T>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = known.upgrade().or_else(|| start_or_skip(start).map(Arc::new))?;
        *known = Arc::downgrade(&servers);
        Some(servers)
    }
}
