//! Tasks in Rust and threads in Java add to one number, in two steps, under one lock: not one addition is lost.

use std::process::{Command, Stdio};

use leasehold_core::{Client, Lock};
use leasehold_interop::Lock as JavaLock;
use leasehold_redis::{Redis, RedisConfig};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use crate::{
    common,
    stage::{SHORT, Stage, java},
};

/// Who adds: tasks in each of so many clients, threads in Java, and how often each of them does.
struct Crowd {
    clients: u32,
    tasks: u32,
    threads: u32,
    times: u32,
}

const SOME: Crowd = Crowd { clients: 1, tasks: 40, threads: 8, times: 10 };
const MANY: Crowd = Crowd { clients: 2, tasks: 1000, threads: 100, times: 1 };

sentences! {
    a_counter_under_one_lock_is_exact
    a_counter_under_one_fair_lock_is_exact
    a_counter_under_one_write_lock_is_exact
    a_counter_under_one_fenced_lock_is_exact
    two_thousand_tasks_and_a_hundred_threads_count_exactly
    two_processes_of_a_thousand_tasks_and_one_of_java_count_exactly
}

async fn a_counter_under_one_lock_is_exact(stage: &mut Stage) {
    count(stage, &SOME, &stage.java.thread("t1").lock("c"), |rust| rust.lock("c")).await;
}

async fn a_counter_under_one_fair_lock_is_exact(stage: &mut Stage) {
    count(stage, &SOME, &stage.java.thread("t1").fair("c"), |rust| rust.lock("c").fair()).await;
}

async fn a_counter_under_one_write_lock_is_exact(stage: &mut Stage) {
    count(stage, &SOME, &stage.java.thread("t1").write("c"), |rust| rust.rwlock("c").write()).await;
}

async fn a_counter_under_one_fenced_lock_is_exact(stage: &mut Stage) {
    count(stage, &SOME, &stage.java.thread("t1").fenced("c"), |rust| rust.lock("c").fenced()).await;
}

async fn two_thousand_tasks_and_a_hundred_threads_count_exactly(stage: &mut Stage) {
    count(stage, &MANY, &stage.java.thread("t1").lock("c"), |rust| rust.lock("c")).await;
}

async fn two_processes_of_a_thousand_tasks_and_one_of_java_count_exactly(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").lock("c");
    let threads = stage.java.thread("t1").count(&theirs, "count", MANY.threads, MANY.times);
    let this = std::env::current_exe().unwrap();
    let processes: Vec<_> = (0..MANY.clients)
        .map(|_| {
            let mut process = Command::new(&this);
            process.args(["--ignored", "--exact", "counter::one_process_of_two"]);
            process.env(URL, stage.redis.server.url()).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut process in processes {
        let ended = tokio::task::spawn_blocking(move || process.wait());
        assert!(ended.await.unwrap().unwrap().success());
    }
    assert_eq!(java(threads).await, u64::from(MANY.threads * MANY.times));
    let total = (MANY.clients * MANY.tasks + MANY.threads) * MANY.times;
    assert_eq!(stage.redis.raw::<u32>(&["GET", "count"]).await, total);
}

/// Where a process of its own finds the server.
const URL: &str = "LEASEHOLD_TEST_COUNTER";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process of its own, started by another test"]
async fn one_process_of_two() {
    let Ok(url) = std::env::var(URL) else { return };
    let client = Client::new(Redis::open(RedisConfig::from_url(&url).unwrap()).await.unwrap());
    let bare = common::bare(&url).await;
    let mut tasks = JoinSet::new();
    for _ in 0..MANY.tasks {
        let (lock, bare) = (client.lock("c"), bare.clone());
        tasks.spawn(async move { add(&lock, bare).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    client.shutdown("10s").await.unwrap();
}

async fn count(stage: &Stage, crowd: &Crowd, theirs: &JavaLock<'_>, ours: impl Fn(&Client) -> Lock) {
    let threads = stage.java.thread("t1").count(theirs, "count", crowd.threads, crowd.times);
    let mut tasks = JoinSet::new();
    for _ in 0..crowd.clients {
        let client = stage.redis.client().await;
        for _ in 0..crowd.tasks {
            let (lock, bare, times) = (ours(&client).ttl(SHORT), stage.redis.bare.clone(), crowd.times);
            tasks.spawn(async move {
                for _ in 0..times {
                    add(&lock, bare.clone()).await;
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(java(threads).await, u64::from(crowd.threads * crowd.times));
    let total = (crowd.clients * crowd.tasks + crowd.threads) * crowd.times;
    assert_eq!(stage.redis.raw::<u32>(&["GET", "count"]).await, total);
}

/// Adds one, in two steps that only the lock holds together.
async fn add(lock: &Lock, mut bare: MultiplexedConnection) {
    let guard = lock.acquire().await.unwrap();
    let before: Option<u64> = redis::cmd("GET").arg("count").query_async(&mut bare).await.unwrap();
    let after = before.unwrap_or(0) + 1;
    redis::cmd("SET").arg("count").arg(after).exec_async(&mut bare).await.unwrap();
    guard.release().await.unwrap();
}
