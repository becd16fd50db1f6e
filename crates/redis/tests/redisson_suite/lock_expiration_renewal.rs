//! `RedissonLockExpirationRenewalTest`: renewal goes on after the server forgot everything.

use leasehold_core::{Client, ErrorKind, Owner, backend::Loss};

use crate::{
    common::eventually,
    stage::{Make, SHORT, Stage, play, renewed},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_write_lock_after_timeout() {
    play(async |stage| after_timeout(stage, |client, name| client.rwlock(name).write()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_after_timeout() {
    play(async |stage| after_timeout(stage, |client, name| client.rwlock(name).read()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_after_timeout() {
    play(async |stage| after_timeout(stage, Client::lock).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_reentrant_renew() {
    play(async |stage| {
        let me = Owner::new();
        let lock = stage.ours.lock("n").ttl(SHORT).owner(&me);
        let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
        inner.release().await.unwrap();
        outer.release().await.unwrap();
        let guard = stage.ours.lock("n").ttl(SHORT).acquire().await.unwrap();
        renewed(&guard, 10).await;
        assert_eq!(stage.count("n", guard.id()).await, 1);
        guard.release().await.unwrap();
    })
    .await;
}

/// The server restarts and has forgotten: the holder is told, and whoever holds the name then is renewed, twice.
async fn after_timeout(stage: &mut Stage, make: Make) {
    let guard = make(&stage.ours, "n").ttl(SHORT).acquire().await.unwrap();
    stage.redis.server.crash().unwrap();
    stage.redis.server.restart().unwrap();
    stage.look_again().await;
    assert!(matches!(guard.lost().await, Loss::Gone | Loss::Expired));
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    for _ in 0..2 {
        eventually(async || stage.ours.inspect("n").await.is_ok()).await;
        let guard = make(&stage.ours, "n").ttl(SHORT).acquire().await.unwrap();
        renewed(&guard, 5).await;
        assert_eq!(stage.count("n", guard.id()).await, 1);
        guard.release().await.unwrap();
    }
}
