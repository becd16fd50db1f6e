//! Time under shuttle: it stands still until a test lets it jump, and every sleeper wakes at the jump it waits for.
//!
//! Shuttle has no time of its own: a sleep there ends when its turn comes. That would hide a lost wake-up behind the
//! next poll; here whoever is not woken sleeps on, and shuttle says so.

use std::time::Duration;

use tokio::sync::Notify;

use crate::sync::atomic::{AtomicU64, Ordering};

/// A test's time.
#[derive(Debug)]
pub(super) struct TestTime {
    nanos: AtomicU64,
    jumped: Notify,
}

impl TestTime {
    pub(super) fn new() -> Self {
        Self { nanos: AtomicU64::new(0), jumped: Notify::new() }
    }

    pub(super) fn passed(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::SeqCst))
    }

    /// Jumps this far.
    pub(super) fn suspend(&self, duration: Duration) {
        self.nanos.fetch_add(duration.as_nanos() as u64, Ordering::SeqCst);
        self.jumped.notify_waiters();
    }

    pub(super) async fn sleep(&self, duration: Duration) {
        let end = self.passed().saturating_add(duration);
        loop {
            let jumped = self.jumped.notified();
            if self.passed() >= end {
                return;
            }
            jumped.await;
        }
    }
}
