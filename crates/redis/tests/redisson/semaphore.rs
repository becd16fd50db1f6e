//! The semaphore that only counts: its number is the same, so what we hold of it Java sees taken.

use crate::stage::{LEASE, ROUNDS, Stage, java, wait};

const CHANNEL: &str = "redisson_sc:{s}";

sentences! {
    java_sees_what_rust_holds
    a_java_waiter_is_woken_when_rust_gives_back
    a_rust_waiter_is_woken_when_java_gives_back
}

async fn java_sees_what_rust_holds(stage: &mut Stage) {
    let (theirs, semaphore) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 3));
    assert!(java(theirs.try_set_permits(3)).await);
    let guard = semaphore.permits(2).acquire().await.unwrap();
    assert_eq!(java(theirs.available()).await, 1);
    assert!(!java(theirs.try_acquire(2)).await);
    guard.release().await.unwrap();
    assert_eq!(java(theirs.available()).await, 3);
}

async fn a_java_waiter_is_woken_when_rust_gives_back(stage: &mut Stage) {
    let (theirs, semaphore) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 2));
    assert!(java(theirs.try_set_permits(2)).await);
    for _ in 0..ROUNDS {
        let guard = semaphore.permits(2).ttl(LEASE).acquire().await.unwrap();
        let waiting = theirs.acquire(2);
        stage.heard(CHANNEL).await;
        guard.release().await.unwrap();
        java(waiting).await;
        assert_eq!(java(theirs.available()).await, 0);
        java(theirs.release(2)).await;
        stage.silence().await;
    }
}

async fn a_rust_waiter_is_woken_when_java_gives_back(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 2).permits(1));
    assert!(java(theirs.try_set_permits(2)).await);
    for _ in 0..ROUNDS {
        java(theirs.acquire(2)).await;
        assert!(ours.try_acquire().await.unwrap().is_none());
        let waiting = wait(&ours);
        stage.heard(CHANNEL).await;
        java(theirs.release(2)).await;
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}
