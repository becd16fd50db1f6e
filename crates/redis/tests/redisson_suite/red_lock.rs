//! `RedissonRedLockTest`: one lock on several servers, held by a majority. Redisson played it over two servers and three
//! locks; a Redlock of ours is one name on three servers.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use leasehold_core::Client;
use leasehold_redis::{Redis, RedisConfig, redlock};
use leasehold_testkit::servers::{redis::Independent, start_or_skip};
use tokio::task::JoinSet;

async fn client(servers: &Independent) -> Client {
    Client::new(redlock(&servers.url()).await.unwrap())
}

/// Somebody else holds the name on these servers alone.
async fn hold_on(servers: &Independent, members: std::ops::Range<usize>) -> Vec<leasehold_core::Guard> {
    let mut guards = Vec::new();
    for server in &servers.members()[members] {
        let store = Redis::open(RedisConfig::from_url(&server.url()).unwrap()).await.unwrap();
        guards.push(Client::new(store).lock("a").acquire().await.unwrap());
    }
    guards
}

/// Ten tasks add to a number five times each, in two steps that only the lock holds together.
async fn fifty_additions(ttl: &str, tries: bool) {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    let (count, mut tasks) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    let clients = [client(&servers).await, client(&servers).await];
    for task in 0..10 {
        let (lock, count) = (clients[task % 2].lock("a").ttl(ttl), count.clone());
        tasks.spawn(async move {
            for _ in 0..5 {
                let guard = if tries {
                    lock.clone().wait("100s").try_acquire().await.unwrap().unwrap()
                } else {
                    lock.acquire().await.unwrap()
                };
                let before = count.load(Ordering::Relaxed);
                tokio::task::yield_now().await;
                count.store(before + 1, Ordering::Relaxed);
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_leasetime_with_milli_seconds() {
    fifty_additions("5000ms", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_leasetime_with_seconds() {
    fifty_additions("30s", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_leasetime_with_minutes() {
    fifty_additions("1m", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_leasetime() {
    fifty_additions("10s", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_failed() {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    let _held = hold_on(&servers, 0..2).await;
    assert!(client(&servers).await.lock("a").try_acquire().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_success() {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    let _held = hold_on(&servers, 0..1).await;
    let guard = client(&servers).await.lock("a").try_acquire().await.unwrap().unwrap();
    guard.check().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_success2() {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    let client = client(&servers).await;
    let held = hold_on(&servers, 2..3).await;
    let fence = {
        let guard = client.lock("a").acquire().await.unwrap();
        guard.extend("30s").await.unwrap();
        let fence = guard.fence();
        guard.release().await.unwrap();
        fence
    };
    drop(held);
    assert!(client.lock("a").acquire().await.unwrap().fence() > fence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_connection_failed() {
    let Some(mut servers) = start_or_skip(|| Independent::start(3)) else { return };
    let client = client(&servers).await;
    servers.members_mut()[0].crash().unwrap();
    let guard = client.lock("a").acquire().await.unwrap();
    guard.check().unwrap();
    guard.release().await.unwrap();
}
