//! `RedissonReadWriteLockTest`: many readers or one writer. Its cases about leases are in `read_write_lock_leases`.

use leasehold_core::{ErrorKind, Owner, RwLock, State, backend::BreakOutcome};
use tokio::task::JoinSet;

use crate::{
    common::eventually,
    stage::{Counter, LONG, SHORT, Stage, play, renewed, wait},
};

const CHANNEL: &str = "redisson_rwlock:{n}";

as_lock! {
    |client, name| client.rwlock(name).read();
    test_is_held_by_current_thread_other_thread
    test_is_held_by_current_thread
    test_is_locked_other_thread
    test_is_locked
    test_unlock_fail
    test_lock_unlock
}

/// The mode of the lock, as Redisson reads it.
async fn mode(stage: &Stage) -> Option<String> {
    stage.raw(&["HGET", "n", "mode"]).await
}

/// Whether another client could read, and whether it could write.
async fn open_to(other: &RwLock) -> (bool, bool) {
    let reads = other.read().try_acquire().await.unwrap();
    let can_read = reads.is_some();
    if let Some(guard) = reads {
        guard.release().await.unwrap();
    }
    let writes = other.write().try_acquire().await.unwrap();
    let can_write = writes.is_some();
    if let Some(guard) = writes {
        guard.release().await.unwrap();
    }
    (can_read, can_write)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_is_locked() {
    play(async |stage| {
        let (rwlock, me) = (stage.ours.rwlock("n"), Owner::new());
        let writer = rwlock.write().owner(&me).acquire().await.unwrap();
        let id = writer.id().to_string();
        assert!(!stage.raw::<bool>(&["HEXISTS", "n", &id]).await, "nobody reads yet");
        let reader = rwlock.read().owner(&me).acquire().await.unwrap();
        assert!(stage.raw::<bool>(&["HEXISTS", "n", &id]).await);
        assert_eq!(
            stage.raw::<u32>(&["HLEN", "n"]).await,
            3,
            "mode, writer, reader: locked for reading to Redisson"
        );
        reader.release().await.unwrap();
        writer.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_name() {
    play(async |stage| {
        let mut running = JoinSet::new();
        for _ in 0..10 {
            let read = stage.ours.rwlock("{test}:abc:key").read();
            running.spawn(async move {
                for _ in 0..10 {
                    read.acquire().await.unwrap().release().await.unwrap();
                }
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        let left = stage.redis.keys().await;
        assert!(left.iter().all(|key| key.starts_with("leasehold_")), "{left:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_wr() {
    play(async |stage| {
        let (rwlock, me) = (stage.ours.rwlock("n"), Owner::new());
        let writer = rwlock.write().owner(&me).acquire().await.unwrap();
        let reader = rwlock.read().owner(&me).acquire().await.unwrap();
        reader.release().await.unwrap();
        assert_eq!(mode(stage).await.as_deref(), Some("write"));
        writer.check().unwrap();
        assert_eq!(open_to(&stage.theirs.rwlock("n")).await, (false, false));
        writer.release().await.unwrap();
        assert_eq!(mode(stage).await, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_write_read() {
    play(async |stage| {
        let clients = stage.clients(2).await;
        let writer = stage.theirs.rwlock("n").write().ttl(LONG).acquire().await.unwrap();
        let waiting: Vec<_> = (0..20).map(|task| wait(&clients[task % 2].rwlock("n").read())).collect();
        stage.heard_by(CHANNEL, 2).await;
        eventually(async || clients.iter().map(|client| client.stats().waiting).sum::<usize>() == 20).await;
        writer.release().await.unwrap();
        let mut reading = Vec::new();
        for waiter in waiting {
            reading.push(waiter.await.unwrap());
        }
        // All at once: each still reads when the last one begins.
        assert_eq!(stage.holders("n").await.len(), 20);
        for guard in reading {
            guard.release().await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_write_read_reentrancy() {
    play(async |stage| {
        let (rwlock, other, me) = (stage.ours.rwlock("n"), stage.theirs.rwlock("n"), Owner::new());
        let writer = rwlock.write().owner(&me).acquire().await.unwrap();
        let reader = rwlock.read().owner(&me).try_acquire().await.unwrap().unwrap();
        assert_eq!(open_to(&other).await, (false, false));
        writer.release().await.unwrap();
        assert_eq!(mode(stage).await.as_deref(), Some("read"));
        assert_eq!(open_to(&other).await, (true, false));
        reader.release().await.unwrap();
        assert_eq!(open_to(&other).await, (true, true));
        assert!(!stage.is_locked("n").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_write_lock() {
    play(async |stage| {
        let (rwlock, other, me) = (stage.ours.rwlock("n"), stage.theirs.rwlock("n"), Owner::new());
        let write = rwlock.write().owner(&me);
        let (outer, inner) = (write.acquire().await.unwrap(), write.acquire().await.unwrap());
        let field = format!("{}:write", outer.id());
        assert_eq!(stage.raw::<u32>(&["HGET", "n", &field]).await, 2);
        assert_eq!(open_to(&other).await, (false, false));
        inner.release().await.unwrap();
        assert_eq!(stage.raw::<u32>(&["HGET", "n", &field]).await, 1);
        let reader = rwlock.read().owner(&me).acquire().await.unwrap();
        outer.release().await.unwrap();
        assert_eq!(open_to(&other).await, (true, false));
        // A reader does not become a writer, not even the only one: two that tried would wait for each other.
        let error = write.wait("1s").acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
        reader.release().await.unwrap();
        assert_eq!(open_to(&other).await, (true, true));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multi_read() {
    play(async |stage| {
        let (rwlock, other) = (stage.ours.rwlock("n"), stage.theirs.rwlock("n"));
        let (one, two) = (rwlock.read().acquire().await.unwrap(), other.read().acquire().await.unwrap());
        assert_eq!(stage.holders("n").await.len(), 2);
        assert!(other.write().try_acquire().await.unwrap().is_none());
        let id = one.id();
        one.release().await.unwrap();
        assert!(other.write().try_acquire().await.unwrap().is_none());
        two.release().await.unwrap();
        let writer = other.write().try_acquire().await.unwrap().unwrap();
        writer.release().await.unwrap();
        assert_eq!(stage.theirs.break_hold("n", id, "x").await.unwrap(), BreakOutcome::NotHeld);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_force_unlock() {
    play(async |stage| {
        let (rwlock, other) = (stage.ours.rwlock("n"), stage.theirs.rwlock("n"));
        let one = rwlock.read().ttl(SHORT).acquire().await.unwrap();
        let two = rwlock.read().ttl(SHORT).acquire().await.unwrap();
        assert_eq!(stage.theirs.break_hold("n", one.id(), "x").await.unwrap(), BreakOutcome::Broken);
        one.lost().await;
        // One reader was named; the other reads on, and is renewed.
        renewed(&two, 2).await;
        assert!(other.write().try_acquire().await.unwrap().is_none());
        assert_eq!(stage.theirs.break_hold("n", two.id(), "x").await.unwrap(), BreakOutcome::Broken);
        let writer = other.write().try_acquire().await.unwrap().unwrap();
        // For another reason: the same request once more would be told what became of the first.
        assert_eq!(stage.ours.break_hold("n", two.id(), "y").await.unwrap(), BreakOutcome::NotHeld);
        writer.check().unwrap();
        assert_eq!(stage.ours.break_hold("n", writer.id(), "x").await.unwrap(), BreakOutcome::Broken);
        assert!(!stage.is_locked("n").await);
        drop(writer);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_hold_count() {
    play(async |stage| {
        for writes in [false, true] {
            let (rwlock, me) = (stage.ours.rwlock("n"), Owner::new());
            let lock = if writes { rwlock.write() } else { rwlock.read() }.owner(&me);
            assert!(!stage.is_locked("n").await);
            let guard = lock.acquire().await.unwrap();
            assert_eq!(stage.count("n", guard.id()).await, 1);
            guard.release().await.unwrap();
            assert!(!stage.is_locked("n").await);
            let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
            assert_eq!(stage.count("n", outer.id()).await, 2);
            inner.release().await.unwrap();
            assert_eq!(stage.count("n", outer.id()).await, 1);
            outer.release().await.unwrap();
            assert!(!stage.is_locked("n").await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_reentrancy() {
    play(async |stage| {
        let me = Owner::new();
        let read = stage.ours.rwlock("n").read().owner(&me);
        let (outer, inner) =
            (read.try_acquire().await.unwrap().unwrap(), read.try_acquire().await.unwrap().unwrap());
        assert_eq!(open_to(&stage.theirs.rwlock("other")).await, (true, true));
        inner.release().await.unwrap();
        assert_eq!(open_to(&stage.theirs.rwlock("n")).await, (true, false));
        outer.release().await.unwrap();
        assert_eq!(open_to(&stage.theirs.rwlock("n")).await, (true, true));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_single_instance() {
    play(async |stage| mixed(std::slice::from_ref(&stage.ours), 12, 4).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_loop_multi_instance() {
    play(async |stage| mixed(&stage.clients(6).await, 6, 10).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_multi_instance() {
    play(async |stage| mixed(&stage.clients(30).await, 30, 1).await).await;
}

/// So many tasks, spread over these clients, read or add to a counter so often, in turn.
async fn mixed(clients: &[leasehold_core::Client], tasks: usize, times: usize) {
    let counter = Counter::default();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (rwlock, counter) = (clients[task % clients.len()].rwlock("n"), counter.clone());
        running.spawn(async move {
            for round in 0..times {
                if (task + round) % 2 == 0 {
                    counter.add_under(&rwlock.write()).await;
                    continue;
                }
                let guard = rwlock.read().acquire().await.unwrap();
                let seen = counter.get();
                tokio::task::yield_now().await;
                assert_eq!((counter.get(), guard.state()), (seen, State::Held), "written while read");
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.get(), (tasks * times / 2) as u64);
    for client in clients {
        client.shutdown("5s").await.unwrap();
    }
}
