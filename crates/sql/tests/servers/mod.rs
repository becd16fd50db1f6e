//! Servers that tests share, and what is common to tests of both kinds of them.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use leasehold_testkit::servers::{StartError, start_or_skip};

/// One set of servers for all cases that run at the same time: they are isolated by their names. It ends with the last
/// of them.
pub(crate) struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    pub(crate) fn get(&self, start: impl FnOnce() -> Result<T, StartError>) -> Arc<T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(servers) = known.upgrade() {
            return servers;
        }
        let servers = Arc::new(start_or_skip(start).expect("the server is installed"));
        *known = Arc::downgrade(&servers);
        servers
    }
}

/// Completes when something is so; it fails if that does not come within minutes.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be");
}
