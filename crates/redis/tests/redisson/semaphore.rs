//! The semaphore that only counts: its number is the same, so what we hold of it Java sees taken. What Java holds of it
//! has no holder; whoever shares it with Java all the same says so, with `counting()`.

use leasehold_core::{ErrorKind, backend::Kind};

use crate::{
    common::eventually,
    stage::{LEASE, ROUNDS, SHORT, Stage, grows, java, wait},
};

const CHANNEL: &str = "redisson_sc:{s}";

sentences! {
    java_sees_what_rust_holds
    a_java_waiter_is_woken_when_rust_gives_back
    what_java_holds_of_it_rust_refuses_and_leaves_alone
    a_rust_that_counts_shares_it_with_java
    a_rust_that_counts_is_woken_when_java_gives_back
    a_java_waiter_is_woken_when_a_rust_that_counts_gives_back
    what_a_rust_that_counts_made_java_takes_from
    a_permit_of_a_rust_that_counts_is_renewed
    what_a_dead_rust_counted_comes_back_and_wakes_java
    more_than_was_said_is_a_conflict
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

async fn a_rust_that_counts_shares_it_with_java(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 4).counting());
    assert!(java(theirs.try_set_permits(4)).await);
    java(theirs.acquire(1)).await;
    let two = ours.permits(2).try_acquire().await.unwrap().unwrap();
    assert_eq!(java(theirs.available()).await, 1);
    assert!(ours.permits(2).try_acquire().await.unwrap().is_none());
    assert!(!java(theirs.try_acquire(2)).await);
    let one = ours.permits(1).try_acquire().await.unwrap().unwrap();
    let seen = stage.rust.inspect("s").await.unwrap().unwrap();
    assert_eq!((seen.kind, seen.holders.len()), (Kind::Semaphore { of: 3 }, 2), "all but what Java holds");
    java(theirs.release(1)).await;
    two.release().await.unwrap();
    one.release().await.unwrap();
    assert_eq!(java(theirs.available()).await, 4);
    // Java may change how many there are.
    java(theirs.add_permits(-3)).await;
    let one = ours.permits(1).try_acquire().await.unwrap().unwrap();
    assert!(ours.permits(1).try_acquire().await.unwrap().is_none());
    one.release().await.unwrap();
}

async fn a_rust_that_counts_is_woken_when_java_gives_back(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").semaphore("s");
    let ours = stage.rust.semaphore("s", 2).counting().permits(2);
    assert!(java(theirs.try_set_permits(2)).await);
    for _ in 0..ROUNDS {
        java(theirs.acquire(2)).await;
        let waiting = wait(&ours);
        stage.heard(CHANNEL).await;
        assert!(!waiting.is_finished());
        java(theirs.release(2)).await;
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}

async fn a_java_waiter_is_woken_when_a_rust_that_counts_gives_back(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").semaphore("s");
    let ours = stage.rust.semaphore("s", 2).counting().permits(2).ttl(LEASE);
    assert!(java(theirs.try_set_permits(2)).await);
    for _ in 0..ROUNDS {
        let guard = ours.acquire().await.unwrap();
        let mut waiting = theirs.acquire(1);
        stage.heard(CHANNEL).await;
        assert!(!waiting.is_done());
        guard.release().await.unwrap();
        java(waiting).await;
        assert_eq!(java(theirs.available()).await, 1);
        java(theirs.release(1)).await;
        stage.silence().await;
    }
}

async fn what_a_rust_that_counts_made_java_takes_from(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 3).counting());
    // Java waits for a semaphore that nobody has made yet.
    let waiting = theirs.acquire(2);
    stage.heard(CHANNEL).await;
    let guard = ours.permits(1).acquire().await.unwrap();
    java(waiting).await;
    assert!(!java(theirs.try_set_permits(9)).await);
    assert_eq!(java(theirs.available()).await, 0);
    guard.release().await.unwrap();
    java(theirs.release(2)).await;
    assert_eq!(java(theirs.available()).await, 3);
    assert_eq!(stage.redis.raw::<i64>(&["PTTL", "s"]).await, -1, "Java counts on its staying");
}

async fn a_permit_of_a_rust_that_counts_is_renewed(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").semaphore("s");
    assert!(java(theirs.try_set_permits(2)).await);
    let guard = stage.rust.semaphore("s", 2).counting().permits(2).ttl(SHORT).acquire().await.unwrap();
    grows(async || stage.holders("s").await[0].remaining).await;
    assert!(!java(theirs.try_acquire(1)).await);
    guard.release().await.unwrap();
    assert_eq!(java(theirs.available()).await, 2);
}

async fn what_a_dead_rust_counted_comes_back_and_wakes_java(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").semaphore("s"), stage.rust.semaphore("s", 3).counting());
    assert!(java(theirs.try_set_permits(3)).await);
    java(theirs.acquire(1)).await;
    let dead = ours.permits(2).ttl("1s").no_renew().acquire().await.unwrap();
    let mut waiting = stage.java.thread("t2").semaphore("s").acquire(2);
    stage.heard(CHANNEL).await;
    assert!(!waiting.is_done());
    dead.lost().await;
    // All three are never to be had while Java holds one; but asking for them gives back what has ended.
    eventually(async || {
        let counted: u32 = stage.redis.raw(&["ZCARD", "leasehold_counting:{s}"]).await;
        ours.permits(3).try_acquire().await.unwrap().is_none() && counted == 0
    })
    .await;
    java(waiting).await;
    assert_eq!(dead.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(java(theirs.available()).await, 0, "and it comes back once");
}

async fn more_than_was_said_is_a_conflict(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").semaphore("s");
    assert!(java(theirs.try_set_permits(5)).await);
    let error = stage.rust.semaphore("s", 3).counting().permits(1).try_acquire().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("a semaphore of 5"), "{error}");
    assert_eq!(java(theirs.available()).await, 5);
    // And what one of us counts, another who does not count leaves alone.
    let guard = stage.rust.semaphore("s", 5).counting().permits(1).acquire().await.unwrap();
    let error = stage.rust.semaphore("s", 5).permits(1).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    guard.release().await.unwrap();
}
