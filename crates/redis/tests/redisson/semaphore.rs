//! The semaphore that only counts: its number is the same, so what we hold of it Java sees taken. What Java holds of it
//! has no holder, and we do not share it then: `permits` is the kind for both.

use leasehold_core::ErrorKind;

use crate::stage::{LEASE, ROUNDS, Stage, java};

const CHANNEL: &str = "redisson_sc:{s}";

sentences! {
    java_sees_what_rust_holds
    a_java_waiter_is_woken_when_rust_gives_back
    what_java_holds_of_it_rust_refuses_and_leaves_alone
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

async fn what_java_holds_of_it_rust_refuses_and_leaves_alone(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 2).permits(1));
    assert!(java(theirs.try_set_permits(2)).await);
    java(theirs.acquire(1)).await;
    // Such permits leave no trace but a smaller number, and a smaller number may be anything.
    assert_eq!(ours.try_acquire().await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(java(theirs.available()).await, 1);
    java(theirs.release(1)).await;
    ours.try_acquire().await.unwrap().unwrap().release().await.unwrap();
}
