//! `RedissonReadWriteLockTest`, its cases about leases: who is let in when whose lease ends.

use leasehold_core::{ClientId, ErrorKind, Owner, State};

use crate::stage::{LONG, SHORT, play, renewed};

as_lock! {
    |client, name| client.rwlock(name).write();
    test_auto_expire
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_expiration() {
    play(async |stage| {
        let read = stage.ours.rwlock("n").read().no_renew();
        let long = read.clone().ttl(SHORT * 3).acquire().await.unwrap();
        let short = read.ttl(SHORT).acquire().await.unwrap();
        let writer = stage.theirs.rwlock("n").write().acquire().await.unwrap();
        assert_eq!((long.state(), short.state()), (State::Lost, State::Lost), "it is written while read");
        writer.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_expiration_renewal() {
    play(async |stage| {
        let mut reading = Vec::new();
        for number in 0..50 {
            let client = if number % 2 == 0 { &stage.ours } else { &stage.theirs };
            reading
                .push(client.rwlock(&format!("n{}", number % 10)).read().ttl(SHORT).acquire().await.unwrap());
        }
        for guard in &reading {
            renewed(guard, 1).await;
        }
        renewed(&reading[0], 4).await;
        for guard in reading {
            guard.check().unwrap();
            guard.release().await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_write_lock_expiration() {
    play(async |stage| {
        let me = Owner::new();
        let write = stage.ours.rwlock("n").write().no_renew().owner(&me);
        let outer = write.clone().ttl("10s").acquire().await.unwrap();
        let inner = write.ttl("1s").acquire().await.unwrap();
        let left = stage.ttl("n").await;
        assert!((5_000..=10_000).contains(&left), "re-entry neither stretches nor cuts the lease: {left}");
        assert!(stage.theirs.rwlock("n").write().wait(SHORT).try_acquire().await.unwrap().is_none());
        inner.release().await.unwrap();
        outer.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_lease_timeout_diff_threads_wrr() {
    play(async |stage| {
        let writer = stage.ours.rwlock("n").write().ttl(SHORT).no_renew().acquire().await.unwrap();
        let read = stage.theirs.rwlock("n").read();
        let (one, two) = tokio::join!(read.acquire(), read.acquire());
        assert_eq!(writer.state(), State::Lost);
        assert_eq!(stage.holders("n").await.len(), 2);
        one.unwrap().release().await.unwrap();
        two.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_lease_timeout_diff_threads_rrw() {
    play(async |stage| {
        let read = stage.ours.rwlock("n").read().no_renew();
        let one = read.clone().ttl(SHORT * 3).acquire().await.unwrap();
        let two = read.ttl(LONG).acquire().await.unwrap();
        assert!(stage.ttl("n").await > 60_000);
        two.release().await.unwrap();
        let left = stage.ttl("n").await;
        assert!(left <= 900, "it shrinks back to what the one who stays has left: {left}");
        let writer = stage.theirs.rwlock("n").write().acquire().await.unwrap();
        assert_eq!(one.state(), State::Lost);
        writer.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_lock_lease_timeout() {
    play(async |stage| {
        let me = Owner::new();
        let read = stage.ours.rwlock("n").read().ttl(SHORT).no_renew().owner(&me);
        let (one, two) = (read.acquire().await.unwrap(), read.acquire().await.unwrap());
        two.release().await.unwrap();
        let writer = stage.theirs.rwlock("n").write().acquire().await.unwrap();
        assert_eq!(one.state(), State::Lost);
        writer.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_read_write_ttl() {
    play(async |stage| {
        let (rwlock, me) = (stage.ours.rwlock("n"), Owner::new());
        let writer = rwlock.write().ttl(SHORT).owner(&me).acquire().await.unwrap();
        let reader = rwlock.read().ttl(SHORT).owner(&me).acquire().await.unwrap();
        let again = rwlock.read().ttl(SHORT).owner(&me).acquire().await.unwrap();
        renewed(&writer, 3).await;
        // With Redisson 4 the write lock is renewed no more from here on.
        again.release().await.unwrap();
        renewed(&writer, 4).await;
        writer.release().await.unwrap();
        renewed(&reader, 4).await;
        assert!(stage.theirs.rwlock("n").write().try_acquire().await.unwrap().is_none());
        assert!(stage.ttl("n").await > 0);
        reader.release().await.unwrap();
        assert!(!stage.is_locked("n").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire_read() {
    play(async |stage| {
        let first = stage.ours.rwlock("n").read().ttl(SHORT).no_renew().acquire().await.unwrap();
        let second = stage.theirs.rwlock("n").read().try_acquire().await.unwrap().unwrap();
        first.lost().await;
        assert_eq!(first.release().await.unwrap_err().kind(), ErrorKind::Lost);
        second.check().unwrap();
        assert_eq!(stage.count("n", second.id()).await, 1);
        second.release().await.unwrap();
        assert!(!stage.is_locked("n").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire_write() {
    play(async |stage| crate::as_lock::test_expire(stage, |client, name| client.rwlock(name).write()).await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multi_instance_read_lock_zombie_cleanup() {
    play(async |stage| {
        stage.dies(async |client| client.rwlock("n").read().ttl(SHORT).acquire().await.unwrap()).await;
        let reader = stage.ours.rwlock("n").read().ttl(SHORT).acquire().await.unwrap();
        renewed(&reader, 5).await;
        assert_eq!(stage.raw::<u32>(&["HLEN", "n"]).await, 3, "the dead one's field is still there");
        assert_eq!(stage.holders("n").await.len(), 1, "but it is nobody's holder");
        reader.release().await.unwrap();
        stage.theirs.rwlock("n").write().try_acquire().await.unwrap().unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_multi_instance_zombie_read_lock_performance() {
    play(async |stage| {
        let reader = stage.ours.rwlock("n").read().ttl(SHORT).acquire().await.unwrap();
        for _ in 0..60 {
            stage.raw::<u32>(&["HSET", "n", &format!("{}:1", ClientId::random()), "1"]).await;
        }
        renewed(&reader, 2).await;
        assert_eq!(stage.holders("n").await.len(), 1);
        reader.release().await.unwrap();
        stage.theirs.rwlock("n").write().try_acquire().await.unwrap().unwrap().release().await.unwrap();
    })
    .await;
}
