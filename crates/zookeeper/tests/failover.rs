//! The leader dies in a contended run: nobody overlaps, fences grow, and service is back by itself.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use common::{connect, eventually};
use leasehold_core::{Client, ErrorKind, State, backend::Level};
use leasehold_testkit::servers::{start_or_skip, zookeeper::Ensemble};
use tokio::task::JoinSet;

/// What all workers see.
#[derive(Debug, Default)]
struct Register {
    inside: AtomicBool,
    fence: AtomicU64,
    rounds: AtomicU64,
    stop: AtomicBool,
}

impl Register {
    /// One critical section. Whoever is inside while somebody else believes to hold the lock finds out here.
    async fn enter(&self, guard: &leasehold_core::Guard) {
        if guard.state() == State::Lost {
            return;
        }
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two are inside");
        let before = self.fence.swap(guard.fence(), Ordering::SeqCst);
        assert!(before < guard.fence(), "the fence {} came after {before}", guard.fence());
        tokio::task::yield_now().await;
        self.inside.store(false, Ordering::SeqCst);
        self.rounds.fetch_add(1, Ordering::SeqCst);
    }
}

async fn work(client: Client, register: Arc<Register>) {
    while !register.stop.load(Ordering::SeqCst) {
        match client.lock("contended").ttl("5s").wait("5s").acquire().await {
            Ok(guard) => {
                register.enter(&guard).await;
                drop(guard.release().await);
            }
            Err(error) => {
                let passing = [ErrorKind::Unavailable, ErrorKind::Indeterminate, ErrorKind::Busy];
                assert!(passing.contains(&error.kind()), "{error:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_dies_nobody_overlaps_and_service_comes_back() {
    let Some(mut ensemble) = start_or_skip(|| Ensemble::start(3)) else { return };
    let register = Arc::new(Register::default());
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let client = connect(&format!("{}?session_timeout=20s&command_timeout=2s", ensemble.url())).await;
        assert_eq!(client.info().guarantee.level, Level::S3);
        workers.spawn(work(client, register.clone()));
    }
    let rounds = || register.rounds.load(Ordering::SeqCst);
    eventually(async || rounds() > 20).await;
    let leader = ensemble.leader().unwrap();
    let crashed = Instant::now();
    ensemble.members_mut()[leader].crash().unwrap();
    let at_crash = rounds();
    // What was under way may still end; a few more rounds can only come from the new leader.
    eventually(async || rounds() > at_crash + 4).await;
    let back = crashed.elapsed();
    println!(
        "service is back {back:?} after the leader was killed; promised: the session and two ticks, 20.4s"
    );
    let back = rounds();
    eventually(async || rounds() > back + 20).await;
    register.stop.store(true, Ordering::SeqCst);
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    println!("{} rounds, the last fence was {}", rounds(), register.fence.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_lives_through_the_end_of_its_server() {
    let Some(mut ensemble) = start_or_skip(|| Ensemble::start(3)) else { return };
    let client = connect(&format!("{}?session_timeout=60s&command_timeout=3s", ensemble.url())).await;
    let guard = client.lock("held").ttl("20s").acquire().await.unwrap();
    let fence = guard.fence();
    // One of them is the server of our session: it is missed only for as long as a connection takes.
    for member in 0..3 {
        ensemble.members_mut()[member].crash().unwrap();
        eventually(async || guard.extend("20s").await.is_ok()).await;
        assert_eq!((guard.fence(), guard.state()), (fence, State::Held));
        ensemble.members_mut()[member].come_back().unwrap();
    }
    let other = connect(&ensemble.url()).await;
    assert!(other.lock("held").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    let next = other.lock("held").wait(Duration::from_secs(30)).acquire().await.unwrap();
    assert!(next.fence() > fence);
}
