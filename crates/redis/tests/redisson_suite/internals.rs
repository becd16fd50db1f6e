//! `ReadLockEntryTest` and `PublishSubscribeTest`: what Redisson tests of its insides, seen from outside of ours.

use leasehold_core::Owner;
use tokio::task::JoinSet;

use crate::{
    common::eventually,
    stage::{LONG, play, wait},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn should_have_no_threads_after_non_reentrant_acquire_and_release() {
    play(async |stage| {
        let guard = stage.ours.rwlock("n").read().acquire().await.unwrap();
        assert_eq!(stage.ours.stats().held, 1);
        guard.release().await.unwrap();
        eventually(async || stage.ours.stats().held == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn should_have_no_threads_after_reentrant_acquire_and_release() {
    play(async |stage| {
        let me = Owner::new();
        let read = stage.ours.rwlock("n").read().owner(&me);
        let guards =
            [read.acquire().await.unwrap(), read.acquire().await.unwrap(), read.acquire().await.unwrap()];
        assert_eq!(stage.ours.stats().held, 1, "three guards are one hold to keep");
        for guard in guards {
            guard.release().await.unwrap();
        }
        eventually(async || stage.ours.stats().held == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_subscribe_for_race_condition() {
    play(async |stage| {
        let guard = stage.theirs.lock("n").ttl(LONG).acquire().await.unwrap();
        // Some of these give up before their channel is subscribed, some just then, some after.
        let mut running = JoinSet::new();
        for wait in 1..=20 {
            let lock = stage.ours.lock("n").wait(std::time::Duration::from_micros(wait * 150));
            let read = stage.ours.rwlock("n").read().wait(std::time::Duration::from_micros(wait * 150));
            running.spawn(async move { lock.try_acquire().await.unwrap().is_none() });
            running.spawn(async move { read.try_acquire().await.unwrap().is_none() });
        }
        while let Some(refused) = running.join_next().await {
            assert!(refused.unwrap());
        }
        eventually(async || stage.channels().await.is_empty()).await;
        let waiting = wait(&stage.ours.lock("n"));
        stage.heard_by("redisson_lock__channel:{n}", 1).await;
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}
