//! Many who wait for one name, and what a release costs the server then.
//!
//! What is counted is the test's own: it comes from the server's books, not from ours. What the figure may be is the
//! store's promise, and its test's to check; here is only the herd.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::time::Duration;

use leasehold_core::{Client, Guard};
use tokio::{sync::mpsc, task::JoinSet};

/// Those who wait, and how many of them get it while it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Herd {
    /// How many wait.
    pub waiters: usize,
    /// How many releases are counted.
    pub releases: u32,
    /// Whether each stands in the store's own line. Of others each client sends one to the store.
    pub fair: bool,
}

impl Default for Herd {
    fn default() -> Self {
        Self { waiters: 500, releases: 50, fair: false }
    }
}

impl Herd {
    /// Has them wait for a name at these clients; says how many requests a release and the acquire that follows it cost, by
    /// what `counted` counts once they all stand and it `may_begin`. Prints the figure.
    ///
    /// # Panics
    /// If a fence does not grow, or they never come to stand.
    ///
    /// # Cancel safety
    /// Those who wait go with it.
    #[expect(clippy::print_stdout, reason = "the figure is what the test is for")]
    pub async fn requests_per_release(
        self,
        clients: &[Client],
        name: &str,
        may_begin: impl AsyncFn() -> bool,
        counted: impl AsyncFn() -> u32,
    ) -> f64 {
        let Self { waiters, releases, fair } = self;
        let guard = clients[0].lock(name).ttl("60s").acquire().await.unwrap();
        let (turn, mut turns) = mpsc::channel::<Guard>(1);
        let mut waiting = JoinSet::new();
        for number in 0..waiters {
            let lock = clients[number % clients.len()].lock(name).ttl("60s");
            let (lock, turn) = (if fair { lock.fair() } else { lock }, turn.clone());
            waiting.spawn(async move { turn.send(lock.acquire().await.unwrap()).await });
        }
        let standing = || clients.iter().map(|client| client.stats().waiting).sum::<usize>();
        eventually(async || standing() == waiters).await;
        eventually(may_begin).await;
        let (before, mut fence) = (counted().await, guard.fence());
        guard.release().await.unwrap();
        for _ in 0..releases {
            let guard = turns.recv().await.unwrap();
            assert!(guard.fence() > fence, "{} after {fence}", guard.fence());
            fence = guard.fence();
            guard.release().await.unwrap();
        }
        let each = f64::from(counted().await - before) / f64::from(releases + 1);
        let how = if fair { "in line" } else { "waiting" };
        println!(
            "{waiters} {how} at {} clients, {releases} releases: {each:.1} requests each",
            clients.len()
        );
        each
    }
}

/// Completes when something is so; it fails if that does not come within minutes.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be");
}
