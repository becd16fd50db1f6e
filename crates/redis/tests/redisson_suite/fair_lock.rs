//! `RedissonFairLockTest`: first come, first served. Its cases about scores are in `fair_lock_drift`.

use std::time::Duration;

use leasehold_core::{Client, ErrorKind, State, time::Clock};
use leasehold_redis::Redis;
use tokio::task::JoinSet;

use crate::{
    common::{eventually, spawn},
    stage::{Counter, LONG, SHORT, play, wait},
};

as_lock! {
    |client, name| client.lock(name).fair();
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
async fn test_lease_timeout() {
    play(async |stage| {
        let first = stage.theirs.lock("n").fair().ttl(SHORT).no_renew().acquire().await.unwrap();
        let mut waiting = Vec::new();
        for place in 1..=8 {
            waiting.push(wait(&stage.ours.lock("n").fair().ttl(SHORT).no_renew()));
            stage.line("n", place).await;
        }
        let clock = Clock::boot();
        let began = clock.now();
        // Nobody gives it back: each gets it when the lease of the one before has ended.
        let mut before = first;
        for waiter in waiting {
            let guard = waiter.await.unwrap();
            assert_eq!(before.state(), State::Lost);
            assert!(guard.fence() > before.fence(), "out of turn");
            before = guard;
        }
        let took = began.until(clock.now());
        assert!(took < SHORT * 40, "eight leases of {SHORT:?} took {took:?}: who is next finds out too late");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multiple_locks() {
    play(async |stage| {
        let (clients, counter) = (stage.clients(4).await, Counter::default());
        let mut running = JoinSet::new();
        for task in 0..100 {
            let (lock, counter) = (clients[task % 4].lock("n").fair().ttl("5s"), counter.clone());
            running.spawn(async move { counter.add_under(&lock).await });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        assert_eq!(counter.get(), 100);
        stage.line("n", 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_non_delayed() {
    play(async |stage| {
        let guard = stage.theirs.lock("n").fair().ttl(LONG).acquire().await.unwrap();
        assert!(stage.ours.lock("n").fair().wait("50ms").try_acquire().await.unwrap().is_none());
        stage.ours.idle().await;
        let left = ["redisson_lock_queue:{n}", "redisson_lock_timeout:{n}", "leasehold_line:{n}"];
        assert_eq!(stage.raw::<u32>(&[&["EXISTS"], &left[..]].concat()).await, 0);
        guard.release().await.unwrap();
        let next = stage.theirs.lock("n").fair().try_acquire().await.unwrap().unwrap();
        next.release().await.unwrap();
        // Redisson's fair lock reports success to whoever unlocks what is not there; here it is said.
        let stale = stage.ours.lock("n").fair().ticket().await.unwrap();
        stage.ours.release_ticket(&stale).await.unwrap();
        assert_eq!(stage.ours.release_ticket(&stale).await.unwrap_err().kind(), ErrorKind::Lost);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_multi_instance_ordering() {
    play(async |stage| {
        let clients = stage.clients(4).await;
        let holder = stage.theirs.lock("n").fair().ttl(LONG).acquire().await.unwrap();
        let mut waiting = Vec::new();
        for place in 1..=20 {
            waiting.push(wait(&clients[place % 4].lock("n").fair()));
            stage.line("n", place).await;
        }
        holder.release().await.unwrap();
        for waiter in waiting {
            let guard = waiter.await.unwrap();
            let behind: Vec<String> = stage.raw(&["LRANGE", "redisson_lock_queue:{n}", "0", "-1"]).await;
            assert!(!behind.contains(&guard.id().to_string()));
            // The next in line cannot have it before this one gives it back.
            guard.check().unwrap();
            guard.release().await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_name_mapper() {
    play(async |stage| {
        let client = Client::builder(stage.redis.store().await).prefix("app:").build();
        let guard = client.lock("n").fair().acquire().await.unwrap();
        let waiting = wait(&client.lock("n").fair());
        stage.line("app:n", 1).await;
        assert_eq!(stage.count("app:n", guard.id()).await, 1);
        assert!(stage.raw::<bool>(&["EXISTS", "redisson_lock_timeout:{app:n}"]).await);
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire_failed_not_called_on_redis_timeout() {
    play(async |stage| {
        let config = stage.redis.config().with_command_timeout(Duration::from_millis(100));
        let client = Client::new(Redis::open(config).await.unwrap());
        let guard = stage.theirs.lock("n").fair().ttl(LONG).acquire().await.unwrap();
        let lock = client.lock("n").fair().wait("400ms");
        let waiting = spawn(async move { lock.try_acquire().await });
        stage.line("n", 1).await;
        stage.raw::<()>(&["CLIENT", "PAUSE", "600", "WRITE"]).await;
        // Whether it is told that it did not get it or that the server was silent, it leaves the line.
        match waiting.await.unwrap() {
            Ok(got) => assert!(got.is_none()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
        }
        client.idle().await;
        stage.line("n", 0).await;
        eventually(async || !stage.raw::<bool>(&["EXISTS", "redisson_lock_timeout:{n}"]).await).await;
        guard.release().await.unwrap();
    })
    .await;
}
