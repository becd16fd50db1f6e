//! `RedissonFairLockTest`, its cases about scores: a waiter's score says when it gives up its place, and must not run
//! away from the truth, whoever comes, goes or dies.

use std::collections::BTreeMap;

use leasehold_core::{Guard, backend::BreakOutcome};
use tokio::task::{JoinHandle, JoinSet};

use crate::{
    common::{eventually, java, spawn},
    stage::{Counter, SHORT, Stage, play, wait},
};

const QUEUE: &str = "redisson_lock_queue:{n}";
const SCORES: &str = "redisson_lock_timeout:{n}";

/// What Redisson adds for each place, and so do we.
const WAIT: f64 = 300_000.0;

/// The line in order, and how far ahead of the server's clock each score is.
async fn line(stage: &Stage) -> Vec<(String, f64)> {
    let queue: Vec<String> = stage.raw(&["LRANGE", QUEUE, "0", "-1"]).await;
    let scores: BTreeMap<String, f64> = stage.raw(&["ZRANGE", SCORES, "0", "-1", "WITHSCORES"]).await;
    let now = now(stage).await;
    assert_eq!(queue.len(), scores.len(), "list and scores are in step");
    queue.into_iter().map(|id| (id.clone(), scores[&id] - now)).collect()
}

async fn now(stage: &Stage) -> f64 {
    let time: Vec<f64> = stage.raw(&["TIME"]).await;
    time[0] * 1000.0 + time[1] / 1000.0
}

/// Nobody's score is further ahead than its place explains.
async fn assert_no_drift(stage: &Stage, lease: f64) {
    for (place, (id, ahead)) in (1_u32..).zip(line(stage).await) {
        let most = lease + WAIT * f64::from(place);
        assert!(ahead <= most, "{id} at place {place} is {ahead} ahead; {most} is the most");
    }
}

/// A holder and so many who wait, one behind the other.
async fn queue(stage: &Stage, waiters: usize) -> (Guard, Vec<JoinHandle<Guard>>) {
    let holder = stage.theirs.lock("n").fair().ttl("30s").acquire().await.unwrap();
    let mut waiting = Vec::new();
    for place in 1..=waiters {
        waiting.push(wait(&stage.ours.lock("n").fair()));
        stage.line("n", place).await;
    }
    (holder, waiting)
}

/// A waiter of Redisson's, as it stands in the lists, that gives up its place after so long.
async fn java_stands(stage: &Stage, milliseconds: f64) -> String {
    let (id, score) = (java(), now(stage).await + milliseconds);
    stage.raw::<u32>(&["RPUSH", QUEUE, &id]).await;
    stage.raw::<u32>(&["ZADD", SCORES, &format!("{score:.0}"), &id]).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_wait_timeout_drift() {
    play(async |stage| {
        let (holder, mut waiting) = queue(stage, 1).await;
        let mut running = JoinSet::new();
        for _ in 0..3 {
            let lock = stage.ours.lock("n").fair().wait("10ms").ttl("30s");
            running.spawn(async move {
                for _ in 0..10 {
                    assert!(lock.try_acquire().await.unwrap().is_none());
                }
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        let last = waiting.remove(0);
        last.abort();
        drop(last.await);
        waiting.push(wait(&stage.ours.lock("n").fair()));
        stage.ours.idle().await;
        stage.line("n", 1).await;
        assert_no_drift(stage, 30_000.0).await;
        let broken = stage.theirs.break_hold("n", holder.id(), "test").await.unwrap();
        assert_eq!(broken, BreakOutcome::Broken);
        waiting.remove(0).await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_acquired_timeout_drift() {
    play(async |stage| {
        let (counter, mut running) = (Counter::default(), JoinSet::new());
        for _ in 0..3 {
            let (lock, counter) = (stage.ours.lock("n").fair().ttl("30s"), counter.clone());
            running.spawn(async move {
                for _ in 0..20 {
                    counter.add_under(&lock).await;
                }
            });
        }
        while !running.is_empty() {
            assert_no_drift_while_moving(stage).await;
            while let Some(done) = running.try_join_next() {
                done.unwrap();
            }
        }
        assert_eq!(counter.get(), 60);
        let (holder, mut waiting) = queue(stage, 1).await;
        assert_no_drift(stage, 30_000.0).await;
        holder.release().await.unwrap();
        waiting.remove(0).await.unwrap().release().await.unwrap();
    })
    .await;
}

/// As [`assert_no_drift`], though the line moves while we look: places are not known, but three stand there at most.
async fn assert_no_drift_while_moving(stage: &Stage) {
    let scores: Vec<(String, f64)> = stage.raw(&["ZRANGE", SCORES, "0", "-1", "WITHSCORES"]).await;
    let now = now(stage).await;
    assert!(scores.iter().all(|(_, score)| score - now <= 30_000.0 + 3.0 * WAIT), "{scores:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire_failed_timeout_drift_descrete() {
    play(async |stage| {
        let (holder, mut waiting) = queue(stage, 4).await;
        let before = line(stage).await;
        for (place, (_, ahead)) in (1_u32..).zip(&before) {
            let step = ahead - WAIT * f64::from(place);
            assert!(
                (20_000.0..=30_001.0).contains(&step),
                "the lease, and one wait for each place: {before:?}"
            );
        }
        let second = waiting.remove(1);
        second.abort();
        drop(second.await);
        stage.line("n", 3).await;
        let after = line(stage).await;
        assert_eq!([&after[0].0, &after[1].0, &after[2].0], [&before[0].0, &before[2].0, &before[3].0]);
        assert_no_drift(stage, 30_000.0).await;
        holder.release().await.unwrap();
        for (waiter, (id, _)) in waiting.into_iter().zip(after) {
            let guard = waiter.await.unwrap();
            assert_eq!(guard.id().to_string(), id, "in order");
            guard.release().await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_acquired_boolean_timeout_drift_descrete() {
    play(async |stage| {
        let lock = stage.ours.lock("n").fair();
        let holder = lock.try_acquire().await.unwrap().unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none());
        stage.line("n", 0).await;
        java_stands(stage, 600.0).await;
        holder.release().await.unwrap();
        assert!(
            lock.try_acquire().await.unwrap().is_none(),
            "somebody is first, and a try does not stand in line"
        );
        assert_eq!(line(stage).await.len(), 1);
        eventually(async || lock.try_acquire().await.unwrap().is_some()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_acquired_timeout_drift_descrete() {
    play(async |stage| {
        let (holder, mut waiting) = queue(stage, 3).await;
        let before = line(stage).await;
        holder.release().await.unwrap();
        let first = waiting.remove(0).await.unwrap();
        stage.line("n", 2).await;
        let after = line(stage).await;
        assert_eq!(after[0].0, before[1].0);
        let step = after[1].1 - after[0].1;
        assert!((step - WAIT).abs() < 1.0, "those behind stay one wait apart: {after:?}");
        for (now, before) in after.iter().zip(&before[1..]) {
            assert!(now.1 <= before.1 - WAIT + 1.0, "each moved up by one wait: {before:?}, {now:?}");
        }
        first.release().await.unwrap();
        for waiter in waiting {
            waiter.await.unwrap().release().await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_abandoned_timeout_drift_descrete() {
    play(async |stage| {
        let holder = stage.theirs.lock("n").fair().ttl("1s").acquire().await.unwrap();
        let (first, second) = (java_stands(stage, 300.0).await, java_stands(stage, 600.0).await);
        let waiting = wait(&stage.ours.lock("n").fair());
        stage.line("n", 3).await;
        let queued = line(stage).await;
        assert_eq!([&queued[0].0, &queued[1].0], [&first, &second]);
        holder.release().await.unwrap();
        // Neither comes back; the third gets it when their time is over.
        let third = waiting.await.unwrap();
        assert_eq!(third.id().to_string(), queued[2].0);
        assert!(line(stage).await.is_empty());
        third.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_first_thread_death_timeout_drift() {
    play(async |stage| {
        let holder = stage.theirs.lock("n").fair().ttl("1s").acquire().await.unwrap();
        let bare = stage.redis.bare.clone();
        stage
            .dies(async move |client| {
                let lock = client.lock("n").fair();
                drop(spawn(async move { drop(lock.acquire().await) }));
                let stands = async || {
                    redis::cmd("LLEN").arg(QUEUE).query_async::<u32>(&mut bare.clone()).await.unwrap() == 1
                };
                eventually(stands).await;
            })
            .await;
        let mut waiting = Vec::new();
        for place in 2..=3 {
            waiting.push(wait(&stage.ours.lock("n").fair()));
            stage.line("n", place).await;
        }
        assert_no_drift(stage, 30_000.0).await;
        // The dead one's place is a lease of its own, far shorter than its score; this is what time does to it.
        let dead = line(stage).await.remove(0).0;
        let soon = now(stage).await + SHORT.as_secs_f64() * 1000.0;
        stage.raw::<u32>(&["ZADD", "leasehold_line:{n}", "XX", &format!("{soon:.0}"), &dead]).await;
        holder.release().await.unwrap();
        for waiter in waiting {
            let guard = waiter.await.unwrap();
            assert_no_drift(stage, 30_000.0).await;
            guard.release().await.unwrap();
        }
    })
    .await;
}
