//! `RedissonMultiLockTest` and the multi-lock cases of the reactive classes: several locks as one.

use leasehold_core::Client;
use leasehold_redis::Redis;
use tokio::task::JoinSet;

use crate::{
    common::{self, eventually, spawn},
    stage::{LONG, play},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_unlock() {
    play(async |stage| {
        let set = stage.ours.set().lock("a").lock("b").ttl("10s");
        let held = set.acquire().await.unwrap();
        held.check().unwrap();
        for name in ["a", "b"] {
            assert_eq!(stage.count(name, held.guard(name).unwrap().id()).await, 1);
        }
        held.release().await.unwrap();
        assert!(!stage.is_locked("a").await && !stage.is_locked("b").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_wait_and_lease_timeouts() {
    play(async |stage| {
        let mut running = JoinSet::new();
        for task in 0..10 {
            let client = if task % 2 == 0 { &stage.ours } else { &stage.theirs };
            // Each names them in another order; they are taken in one.
            let set =
                if task < 5 { client.set().lock("a").lock("b") } else { client.set().lock("b").lock("a") };
            running.spawn(async move { set.ttl("10s").try_acquire().await.unwrap() });
        }
        let mut won = Vec::new();
        while let Some(done) = running.join_next().await {
            won.extend(done.unwrap());
        }
        assert_eq!(won.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multi_threads() {
    play(async |stage| {
        let held = stage.ours.set().lock("a").lock("b").lock("c").ttl(LONG).acquire().await.unwrap();
        let set = stage.theirs.set().lock("c").lock("b");
        let waiting = spawn(async move { set.acquire().await.unwrap() });
        stage.heard_by("redisson_lock__channel:{b}", 1).await;
        assert!(!waiting.is_finished());
        held.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test() {
    play(async |stage| {
        let Some(second) = common::Stage::set().await else { return };
        let Some(third) = common::Stage::set().await else { return };
        let servers = [&stage.redis, &second, &third];
        let mut clients = Vec::new();
        for server in servers {
            clients.push(Client::new(Redis::open(server.config()).await.unwrap()));
        }
        let all =
            || clients[1..].iter().fold(clients[0].set().lock("n"), |set, client| set.with(client.lock("n")));
        let held = all().acquire().await.unwrap();
        for _ in 0..2 {
            assert!(all().try_acquire().await.unwrap().is_none());
        }
        for server in servers {
            assert_eq!(server.raw::<u32>(&["HLEN", "n"]).await, 1);
        }
        held.release().await.unwrap();
        let again = all().try_acquire().await.unwrap().unwrap();
        again.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multi_lock() {
    play(async |stage| {
        let held = stage.ours.set().lock("a").write("b").acquire().await.unwrap();
        assert!(stage.is_locked("a").await && stage.is_locked("b").await);
        drop(held);
        eventually(async || !stage.is_locked("a").await && !stage.is_locked("b").await).await;
    })
    .await;
}
