//! `RedissonFencedLockTest`: the lock whose token is Redisson's, too.

use leasehold_core::Owner;

use crate::stage::play;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_token_increase() {
    play(async |stage| {
        let lock = stage.ours.lock("n").fenced();
        let token = async || stage.raw::<u64>(&["GET", "redisson_lock_token:{n}"]).await;
        let mut last = 0;
        for lock in [lock.clone(), lock.clone().ttl("10s"), lock.clone().wait("1s"), lock.clone().fair()] {
            let guard = lock.try_acquire().await.unwrap().unwrap();
            assert!(guard.fence() > last && guard.fence() == token().await);
            last = guard.fence();
            guard.release().await.unwrap();
            assert_eq!(token().await, last, "the token stays when the lock goes");
            assert_eq!(stage.ttl("redisson_lock_token:{n}").await, -1);
        }
        let me = Owner::new();
        let (outer, inner) =
            (lock.clone().owner(&me).acquire().await.unwrap(), lock.owner(&me).acquire().await.unwrap());
        assert_eq!((outer.fence(), outer.fence()), (inner.fence(), token().await), "one hold, one token");
        inner.release().await.unwrap();
        outer.release().await.unwrap();
    })
    .await;
}
