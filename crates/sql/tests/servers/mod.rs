//! Servers that tests share, and what is common to tests of both kinds of them.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use leasehold_core::{Client, Guard};
use leasehold_testkit::servers::{StartError, start_or_skip};
use tokio::{sync::mpsc, task::JoinSet};

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

/// How many wait for one name.
const WAITERS: usize = 500;

/// How many of them get it while it is counted.
const RELEASES: u32 = 50;

/// Has five hundred tasks of these clients wait for a name; says how many requests a release and the acquire that follows
/// it cost then, by what `counted` counts once it `may_begin`.
#[expect(clippy::print_stdout, reason = "the figure is what the test is for")]
pub(crate) async fn requests_per_release(
    clients: &[Client],
    name: &str,
    may_begin: impl AsyncFn() -> bool,
    counted: impl AsyncFn() -> u32,
) -> f64 {
    let guard = clients[0].lock(name).ttl("60s").acquire().await.unwrap();
    let (turn, mut turns) = mpsc::channel::<Guard>(1);
    let mut waiting = JoinSet::new();
    for number in 0..WAITERS {
        let (lock, turn) = (clients[number % clients.len()].lock(name).ttl("60s"), turn.clone());
        waiting.spawn(async move { turn.send(lock.acquire().await.unwrap()).await });
    }
    let standing = || clients.iter().map(|client| client.stats().waiting).sum::<usize>();
    eventually(async || standing() == WAITERS).await;
    eventually(may_begin).await;
    let (before, mut fence) = (counted().await, guard.fence());
    guard.release().await.unwrap();
    for _ in 0..RELEASES {
        let guard = turns.recv().await.unwrap();
        assert!(guard.fence() > fence, "{} after {fence}", guard.fence());
        fence = guard.fence();
        guard.release().await.unwrap();
    }
    let each = f64::from(counted().await - before) / f64::from(RELEASES + 1);
    println!("{WAITERS} waiters of {} clients, {RELEASES} releases: {each:.1} requests each", clients.len());
    each
}
