//! `RedissonLockTest`: the re-entrant lock.

use leasehold_core::{Client, ErrorKind, Owner, backend::Loss};
use tokio::task::JoinSet;

use crate::{
    common::{eventually, spawn},
    stage::{Counter, LONG, SHORT, play, renewed, wait},
};

as_lock! {
    Client::lock;
    test_try_lock_wait
    test_force_unlock
    test_expire
    test_auto_expire
    test_get_hold_count
    test_is_held_by_current_thread_other_thread
    test_is_held_by_current_thread
    test_is_locked_other_thread
    test_is_locked
    test_unlock_fail
    test_lock_unlock
    test_reentrancy
    test_concurrency_single_instance
    test_concurrency_loop_multi_instance
    test_concurrency_multi_instance
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_subscriptions_per_connection() {
    play(async |stage| {
        let clients = stage.clients(4).await;
        let counters: Vec<Counter> = (0..5).map(|_| Counter::default()).collect();
        let mut running = JoinSet::new();
        for task in 0..32 {
            let (client, counters) = (clients[task % clients.len()].clone(), counters.clone());
            running.spawn(async move {
                for round in 0..10 {
                    let name = (task + round) % counters.len();
                    counters[name].add_under(&client.lock(&format!("n{name}"))).await;
                }
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        assert_eq!(counters.iter().map(Counter::get).sum::<u64>(), 320);
        // The stage looks that no channel stays subscribed, though these clients live on.
        eventually(async || stage.channels().await.is_empty()).await;
        drop(clients);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_single_pub_sub() {
    play(async |stage| {
        let names = ["a", "b"];
        let mut held = Vec::new();
        for name in names {
            held.push(stage.theirs.lock(name).ttl(LONG).acquire().await.unwrap());
        }
        let mut waiting = JoinSet::new();
        for name in [0, 1, 0, 1] {
            let lock = stage.ours.lock(names[name]).wait("20s");
            waiting.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
        }
        for name in names {
            stage.heard_by(&format!("redisson_lock__channel:{{{name}}}"), 1).await;
        }
        let listening: String = stage.raw(&["CLIENT", "LIST", "TYPE", "pubsub"]).await;
        // The other client holds, and may listen on the one channel that tells of breaks.
        let lines = listening.lines().filter(|line| !line.contains(" sub=1 ")).count();
        assert_eq!(lines, 1, "one connection listens for the whole client");
        for guard in held {
            guard.release().await.unwrap();
        }
        while let Some(done) = waiting.join_next().await {
            done.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_is_not_renewed_after_interrupted_try_lock() {
    play(async |stage| {
        for _ in 0..20 {
            let lock = stage.ours.lock("n").ttl(SHORT);
            let asking = spawn(async move { drop(lock.try_acquire().await) });
            tokio::task::yield_now().await;
            asking.abort();
            drop(asking.await);
            stage.ours.idle().await;
            assert_eq!(stage.ours.stats().held, 0);
            assert!(!stage.is_locked("n").await, "what an abandoned try won is given back");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_redis_failed() {
    play(async |stage| {
        stage.redis.server.crash().unwrap();
        let error = stage.ours.lock("n").wait(SHORT).ttl("10s").try_acquire().await.unwrap_err();
        assert!([ErrorKind::Unavailable, ErrorKind::Indeterminate].contains(&error.kind()), "{error}");
        stage.redis.server.restart().unwrap();
        eventually(async || stage.ours.lock("n").try_acquire().await.is_ok()).await;
        stage.look_again().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_remain_time_to_live2() {
    play(async |stage| {
        let me = Owner::new();
        let lock = stage.ours.lock("n").ttl("10s").owner(&me);
        let outer = lock.acquire().await.unwrap();
        for _ in 0..2 {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
        let left = stage.ttl("n").await;
        assert!((5_000..=10_000).contains(&left), "{left}");
        outer.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_uninterruptibly() {
    play(async |stage| {
        let guard = stage.theirs.lock("n").ttl(LONG).acquire().await.unwrap();
        let waiting = wait(&stage.ours.lock("n"));
        stage.heard_by("redisson_lock__channel:{n}", 1).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        stage.ours.idle().await;
        assert_eq!(stage.ours.stats().waiting, 0);
        guard.release().await.unwrap();
        assert!(!stage.is_locked("n").await, "who no longer waits gets nothing");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_remain_time_to_live() {
    play(async |stage| {
        for (lock, lease) in [(stage.ours.lock("n").ttl("1h"), 3_600_000), (stage.ours.lock("n"), 30_000)] {
            assert_eq!(stage.ttl("n").await, -2);
            let guard = lock.acquire().await.unwrap();
            let left = stage.ttl("n").await;
            assert!((lease - 5_000..=lease).contains(&left), "{left}");
            let seen = stage.holders("n").await[0].remaining.as_millis() as i64;
            assert!((lease - 5_000..=lease).contains(&seen), "{seen}");
            guard.release().await.unwrap();
        }
        assert_eq!(stage.ttl("n").await, -2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_try_lock_un_lock() {
    play(async |stage| {
        let lock = stage.ours.lock("n").ttl(SHORT);
        let mut running = JoinSet::new();
        for _ in 0..16 {
            let (lock, client) = (lock.clone(), stage.ours.clone());
            running.spawn(async move {
                for _ in 0..25 {
                    if let Some(guard) = lock.try_acquire().await.unwrap() {
                        assert!(client.stats().held >= 1, "it is held and not kept");
                        guard.release().await.unwrap();
                    }
                }
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        let guard = lock.acquire().await.unwrap();
        renewed(&guard, 2).await;
        guard.release().await.unwrap();
        assert_eq!(stage.ours.stats().held, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_listener() {
    play(async |stage| {
        let expires = stage.ours.lock("expires").ttl(SHORT).no_renew().acquire().await.unwrap();
        assert_eq!(expires.lost().await, Loss::Expired);
        let deleted = stage.ours.lock("deleted").ttl(SHORT).acquire().await.unwrap();
        stage.raw::<u32>(&["DEL", "deleted"]).await;
        assert_eq!(deleted.lost().await, Loss::Gone);
        assert_eq!(deleted.release().await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(stage.raw::<Vec<String>>(&["CONFIG", "GET", "notify-keyspace-events"]).await[1], "");
    })
    .await;
}
