//! Tasks in Rust and threads in Java add to one number, in two steps, under one lock: not one addition is lost.

use leasehold_core::Lock;
use leasehold_interop::Lock as JavaLock;
use tokio::task::JoinSet;

use crate::stage::{LEASE, Stage, java};

const TASKS: u32 = 40;
const THREADS: u32 = 8;
const TIMES: u32 = 10;

sentences! {
    a_counter_under_one_lock_is_exact
    a_counter_under_one_fair_lock_is_exact
    a_counter_under_one_write_lock_is_exact
    a_counter_under_one_fenced_lock_is_exact
}

async fn a_counter_under_one_lock_is_exact(stage: &mut Stage) {
    count(stage, stage.java.thread("t1").lock("c"), stage.rust.lock("c")).await;
}

async fn a_counter_under_one_fair_lock_is_exact(stage: &mut Stage) {
    count(stage, stage.java.thread("t1").fair("c"), stage.rust.lock("c").fair()).await;
}

async fn a_counter_under_one_write_lock_is_exact(stage: &mut Stage) {
    count(stage, stage.java.thread("t1").write("c"), stage.rust.rwlock("c").write()).await;
}

async fn a_counter_under_one_fenced_lock_is_exact(stage: &mut Stage) {
    count(stage, stage.java.thread("t1").fenced("c"), stage.rust.lock("c").fenced()).await;
}

async fn count(stage: &Stage, theirs: JavaLock<'_>, ours: Lock) {
    let threads = stage.java.thread("t1").count(&theirs, "count", THREADS, TIMES);
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (lock, mut bare) = (ours.clone().ttl(LEASE), stage.redis.bare.clone());
        tasks.spawn(async move {
            for _ in 0..TIMES {
                let guard = lock.acquire().await.unwrap();
                let before: Option<u64> = redis::cmd("GET").arg("count").query_async(&mut bare).await.unwrap();
                let after = before.unwrap_or(0) + 1;
                redis::cmd("SET").arg("count").arg(after).exec_async(&mut bare).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(java(threads).await, u64::from(THREADS * TIMES));
    assert_eq!(stage.redis.raw::<u32>(&["GET", "count"]).await, (TASKS + THREADS) * TIMES);
}
