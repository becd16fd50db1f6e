//! The semaphore whose permits have ids and expire: what ours is, too.

use std::time::Duration;

use leasehold_core::backend::{BreakOutcome, Kind};

use crate::stage::{LEASE, ROUNDS, SHORT, Stage, grows, java, wait};

const CHANNEL: &str = "redisson_sc:{s}";

sentences! {
    a_rust_waiter_is_woken_when_java_gives_back
    a_java_waiter_is_woken_when_rust_gives_back
    what_java_set_rust_takes_from
    what_rust_made_java_takes_from
    a_permit_that_java_left_comes_back
    a_permit_that_rust_breaks_java_no_longer_has
    a_permit_that_java_takes_away_is_a_loss_to_rust
    a_rust_permit_is_renewed
}

async fn a_rust_waiter_is_woken_when_java_gives_back(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").permits("s"), stage.rust.semaphore("s", 1).permits(1));
    assert!(java(theirs.try_set_permits(1)).await);
    for _ in 0..ROUNDS {
        let id = java(theirs.acquire_for(LEASE)).await;
        assert!(ours.try_acquire().await.unwrap().is_none());
        let waiting = wait(&ours);
        stage.heard(CHANNEL).await;
        java(theirs.release(&id)).await;
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}

async fn a_java_waiter_is_woken_when_rust_gives_back(stage: &mut Stage) {
    let (theirs, ours) =
        (stage.java.thread("t1").permits("s"), stage.rust.semaphore("s", 1).permits(1).ttl(LEASE));
    for _ in 0..ROUNDS {
        let guard = ours.acquire().await.unwrap();
        assert_eq!(java(theirs.try_acquire()).await, None);
        let mut waiting = theirs.acquire_for(LEASE);
        stage.heard(CHANNEL).await;
        assert!(!waiting.is_done());
        guard.release().await.unwrap();
        let id = java(waiting).await;
        assert!(java(theirs.try_release(&id)).await);
        stage.silence().await;
    }
}

async fn what_java_set_rust_takes_from(stage: &mut Stage) {
    let (theirs, semaphore) = (stage.java.thread("t1").permits("s"), stage.rust.semaphore("s", 5));
    assert!(java(theirs.try_set_permits(5)).await);
    let two = semaphore.permits(2).acquire().await.unwrap();
    assert_eq!((java(theirs.available()).await, java(theirs.acquired()).await), (3, 2));
    let ids = java(theirs.acquire_many(3, LEASE)).await;
    assert!(semaphore.permits(1).try_acquire().await.unwrap().is_none());
    let seen = stage.rust.inspect("s").await.unwrap().unwrap();
    assert_eq!((seen.kind, seen.holders.len()), (Kind::Semaphore { of: 5 }, 4));
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    java(theirs.release_all(&ids)).await;
    let three = semaphore.permits(3).try_acquire().await.unwrap().unwrap();
    assert_eq!(java(theirs.available()).await, 0);
    two.release().await.unwrap();
    three.release().await.unwrap();
    assert_eq!((java(theirs.available()).await, java(theirs.acquired()).await), (5, 0));
}

async fn what_rust_made_java_takes_from(stage: &mut Stage) {
    let (theirs, semaphore) = (stage.java.thread("t1").permits("s"), stage.rust.semaphore("s", 2));
    let guard = semaphore.permits(1).acquire().await.unwrap();
    assert!(!java(theirs.try_set_permits(9)).await);
    let id = java(theirs.acquire_for(LEASE)).await;
    assert_eq!(java(theirs.try_acquire()).await, None);
    assert!(semaphore.permits(1).try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert_eq!(java(theirs.available()).await, 1);
    assert!(semaphore.permits(2).try_acquire().await.unwrap().is_none());
    java(theirs.release(&id)).await;
    semaphore.permits(2).try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

async fn a_permit_that_java_left_comes_back(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").permits("s");
    assert!(java(theirs.try_set_permits(1)).await);
    java(theirs.acquire_for(Duration::from_secs(1))).await;
    stage.rust.semaphore("s", 1).permits(1).acquire().await.unwrap().release().await.unwrap();
    assert_eq!(java(theirs.available()).await, 1);
}

async fn a_permit_that_rust_breaks_java_no_longer_has(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").permits("s");
    assert!(java(theirs.try_set_permits(1)).await);
    let id = java(theirs.acquire_for(LEASE)).await;
    let waiting = stage.java.thread("t2").permits("s").acquire_for(LEASE);
    stage.heard(CHANNEL).await;
    let holder = stage.holders("s").await[0].id;
    let broken = stage.rust.break_hold("s", holder, "it hangs").await.unwrap();
    assert_eq!(broken, BreakOutcome::Broken);
    let next = java(waiting).await;
    assert!(!java(theirs.try_release(&id)).await);
    assert!(java(theirs.try_release(&next)).await);
}

async fn a_permit_that_java_takes_away_is_a_loss_to_rust(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").permits("s");
    let guard = stage.rust.semaphore("s", 1).permits(1).ttl(SHORT).acquire().await.unwrap();
    let members: Vec<Vec<u8>> = stage.redis.raw(&["ZRANGE", "{s}:timeout", "0", "-1"]).await;
    let id = members[0].iter().fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
    assert!(java(theirs.try_release(&id)).await, "a Rust permit has an id as Java's have");
    guard.lost().await;
    assert_eq!(java(theirs.available()).await, 1);
}

async fn a_rust_permit_is_renewed(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").permits("s");
    let guard = stage.rust.semaphore("s", 1).permits(1).ttl(SHORT).acquire().await.unwrap();
    let score = async || {
        let scores: Vec<(Vec<u8>, u64)> =
            stage.redis.raw(&["ZRANGE", "{s}:timeout", "0", "-1", "WITHSCORES"]).await;
        Duration::from_millis(scores[0].1)
    };
    grows(score).await;
    assert_eq!(java(theirs.try_acquire()).await, None);
    guard.release().await.unwrap();
}
