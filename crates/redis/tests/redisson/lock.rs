//! The re-entrant lock.

use std::time::Duration;

use leasehold_core::{
    Client, ErrorKind, Outcome, Owner, State,
    backend::{BreakOutcome, Loss},
};
use leasehold_interop::Lock as JavaLock;
use tokio::task::JoinSet;

use crate::stage::{LEASE, ROUNDS, SHORT, Stage, grows, java, wait};

const CHANNEL: &str = "redisson_lock__channel:{n}";

sentences! {
    a_rust_waiter_is_woken_by_javas_unlock
    a_java_waiter_is_woken_by_rusts_release
    a_java_waiter_is_woken_when_a_rust_guard_is_dropped
    waiters_of_both_sides_get_it_one_after_the_other
    rust_sees_how_often_java_holds
    java_is_shut_out_until_the_last_hold_of_rust_ends
    a_forced_unlock_by_java_is_a_loss_to_rust
    a_forced_unlock_by_java_wakes_a_rust_waiter
    what_rust_breaks_java_no_longer_holds
    a_break_by_rust_wakes_a_java_waiter
    rust_sees_java_renew
    java_sees_rust_renew
    what_a_dead_java_held_comes_to_rust
    a_java_that_gives_up_leaves_rust_its_turn
    a_java_spin_lock_and_rust_exclude_each_other
    a_ticket_shuts_java_out_until_it_is_given_back
    a_prefix_is_part_of_the_name
    names_with_braces_are_the_same_on_both_sides
}

async fn a_rust_waiter_is_woken_by_javas_unlock(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").lock("n"), stage.rust.lock("n"));
    for _ in 0..ROUNDS {
        java(theirs.lock_for(LEASE)).await;
        assert!(ours.try_acquire().await.unwrap().is_none());
        let waiting = wait(&ours);
        stage.heard(CHANNEL).await;
        assert!(!waiting.is_finished());
        java(theirs.unlock()).await;
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}

async fn a_java_waiter_is_woken_by_rusts_release(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").lock("n"), stage.rust.lock("n").ttl(LEASE));
    for _ in 0..ROUNDS {
        let guard = ours.acquire().await.unwrap();
        assert!(!java(theirs.try_lock()).await);
        let mut waiting = theirs.lock_for(LEASE);
        stage.heard(CHANNEL).await;
        assert!(!waiting.is_done());
        guard.release().await.unwrap();
        java(waiting).await;
        assert!(ours.try_acquire().await.unwrap().is_none());
        java(theirs.unlock()).await;
        stage.silence().await;
    }
}

async fn a_java_waiter_is_woken_when_a_rust_guard_is_dropped(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").lock("n");
    let guard = stage.rust.lock("n").ttl(LEASE).acquire().await.unwrap();
    let waiting = theirs.lock_for(LEASE);
    stage.heard(CHANNEL).await;
    drop(guard);
    java(waiting).await;
    java(theirs.unlock()).await;
}

async fn waiters_of_both_sides_get_it_one_after_the_other(stage: &mut Stage) {
    let (one, two) = (stage.java.thread("t1").lock("n"), stage.java.thread("t2").lock("n"));
    let ours = stage.rust.lock("n").ttl(LEASE);
    let guard = ours.acquire().await.unwrap();
    let (first, second) = (one.lock_for(LEASE), two.lock_for(LEASE));
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let lock = ours.clone();
        tasks.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    }
    stage.heard_by(CHANNEL, 2).await;
    guard.release().await.unwrap();
    // Any of them may be first; each lets go when it has it.
    let theirs = async |call, lock: &JavaLock<'_>| {
        java(call).await;
        java(lock.unlock()).await;
    };
    let ((), (), done) = tokio::join!(theirs(first, &one), theirs(second, &two), tasks.join_all());
    assert_eq!(done.len(), 2);
}

async fn rust_sees_how_often_java_holds(stage: &mut Stage) {
    let (thread, ours) = (stage.java.thread("t1"), stage.rust.lock("n"));
    let theirs = thread.lock("n");
    for count in 1..=3 {
        java(theirs.lock_for(LEASE)).await;
        let Outcome::Busy(busy) = ours.attempt().await.unwrap() else { panic!("Java holds it") };
        assert_eq!(busy.holders[0].count, count);
        assert_eq!(busy.holders[0].id.to_string(), thread.holder().await.unwrap());
    }
    for count in [2, 1] {
        java(theirs.unlock()).await;
        assert_eq!(stage.holders("n").await[0].count, count);
        assert!(ours.try_acquire().await.unwrap().is_none());
    }
    java(theirs.unlock()).await;
    assert!(stage.holders("n").await.is_empty());
    ours.acquire().await.unwrap().release().await.unwrap();
}

async fn java_is_shut_out_until_the_last_hold_of_rust_ends(stage: &mut Stage) {
    let (theirs, me) = (stage.java.thread("t1").lock("n"), Owner::new());
    let ours = stage.rust.lock("n").ttl(LEASE).owner(&me);
    let (outer, inner) = (ours.acquire().await.unwrap(), ours.acquire().await.unwrap());
    assert_eq!(stage.redis.raw::<u32>(&["HGET", "n", &outer.id().to_string()]).await, 2);
    let mut waiting = theirs.lock_for(LEASE);
    stage.heard(CHANNEL).await;
    inner.release().await.unwrap();
    assert!(java(stage.java.thread("t2").lock("n").is_locked()).await);
    assert!(!waiting.is_done());
    outer.release().await.unwrap();
    java(waiting).await;
    java(theirs.unlock()).await;
}

async fn a_forced_unlock_by_java_is_a_loss_to_rust(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").lock("n"), stage.rust.lock("n").ttl(SHORT));
    let guard = ours.acquire().await.unwrap();
    assert!(java(theirs.force_unlock()).await);
    java(theirs.lock_for(LEASE)).await;
    assert_eq!(guard.lost().await, Loss::Gone);
    assert_eq!(guard.state(), State::Lost);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(java(theirs.is_held()).await, "what Java holds by now is not ours to release");
    java(theirs.unlock()).await;
}

async fn a_forced_unlock_by_java_wakes_a_rust_waiter(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").lock("n"), stage.rust.lock("n"));
    for _ in 0..ROUNDS {
        java(theirs.lock_for(LEASE)).await;
        let waiting = wait(&ours);
        stage.heard(CHANNEL).await;
        assert!(java(stage.java.thread("t2").lock("n").force_unlock()).await);
        waiting.await.unwrap().release().await.unwrap();
        assert!(theirs.unlock().await.unwrap_err().is_not_owner());
        stage.silence().await;
    }
}

async fn what_rust_breaks_java_no_longer_holds(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").lock("n");
    java(theirs.lock()).await;
    java(theirs.lock()).await;
    let id = stage.holders("n").await[0].id;
    let broken = stage.rust.break_hold("n", id, "it hangs").await.unwrap();
    assert_eq!(broken, BreakOutcome::Broken);
    assert!(!java(theirs.is_held()).await);
    assert!(theirs.unlock().await.unwrap_err().is_not_owner());
    assert_eq!(stage.rust.break_hold("n", id, "again").await.unwrap(), BreakOutcome::NotHeld);
    let guard = stage.rust.lock("n").acquire().await.unwrap();
    // Java's watchdog may still believe; it must not touch what is ours.
    assert!(theirs.unlock().await.unwrap_err().is_not_owner());
    guard.release().await.unwrap();
}

async fn a_break_by_rust_wakes_a_java_waiter(stage: &mut Stage) {
    let (holds, waits) = (stage.java.thread("t1").lock("n"), stage.java.thread("t2").lock("n"));
    java(holds.lock_for(LEASE)).await;
    let waiting = waits.lock_for(LEASE);
    stage.heard(CHANNEL).await;
    let id = stage.holders("n").await[0].id;
    assert_eq!(stage.rust.break_hold("n", id, "it hangs").await.unwrap(), BreakOutcome::Broken);
    java(waiting).await;
    java(waits.unlock()).await;
}

async fn rust_sees_java_renew(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").lock("n");
    java(theirs.lock()).await;
    grows(async || stage.holders("n").await[0].remaining).await;
    assert!(stage.rust.lock("n").try_acquire().await.unwrap().is_none());
    java(theirs.unlock()).await;
}

async fn java_sees_rust_renew(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").lock("n");
    let guard = stage.rust.lock("n").ttl(SHORT).acquire().await.unwrap();
    grows(async || Duration::from_millis(u64::try_from(java(theirs.ttl()).await).unwrap())).await;
    assert!(!java(theirs.try_lock()).await);
    guard.release().await.unwrap();
}

async fn what_a_dead_java_held_comes_to_rust(stage: &mut Stage) {
    java(stage.java.thread("t1").lock("n").lock()).await;
    let waiting = wait(&stage.rust.lock("n"));
    stage.heard(CHANNEL).await;
    stage.java.crash().unwrap();
    waiting.await.unwrap().release().await.unwrap();
}

async fn a_java_that_gives_up_leaves_rust_its_turn(stage: &mut Stage) {
    let (thread, ours) = (stage.java.thread("t1"), stage.rust.lock("n").ttl(LEASE));
    let guard = ours.acquire().await.unwrap();
    assert!(!java(thread.lock("n").try_lock_for(Duration::from_millis(300), LEASE)).await);
    let waiting = wait(&ours);
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}

async fn a_java_spin_lock_and_rust_exclude_each_other(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").spin("n"), stage.rust.lock("n").ttl(LEASE));
    java(theirs.lock_for(LEASE)).await;
    assert!(ours.try_acquire().await.unwrap().is_none());
    let waiting = wait(&ours);
    stage.heard(CHANNEL).await;
    // It tells nobody; who waits for it looks again.
    java(theirs.unlock()).await;
    let guard = waiting.await.unwrap();
    let spinning = theirs.lock_for(LEASE);
    assert!(!java(stage.java.thread("t2").spin("n").try_lock()).await);
    guard.release().await.unwrap();
    java(spinning).await;
    java(theirs.unlock()).await;
}

async fn a_ticket_shuts_java_out_until_it_is_given_back(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").lock("n");
    let ticket = stage.rust.lock("n").ttl(LEASE).ticket().await.unwrap();
    assert!(!java(theirs.try_lock()).await);
    let waiting = theirs.lock_for(LEASE);
    stage.heard(CHANNEL).await;
    stage.rust.release_ticket(&ticket).await.unwrap();
    java(waiting).await;
    java(theirs.unlock()).await;
}

async fn a_prefix_is_part_of_the_name(stage: &mut Stage) {
    let client = Client::builder(stage.redis.store().await).prefix("app:").build();
    let guard = client.lock("n").acquire().await.unwrap();
    assert!(java(stage.java.thread("t1").lock("n").try_lock()).await);
    assert!(!java(stage.java.thread("t1").lock("app:n").try_lock()).await);
    guard.release().await.unwrap();
    java(stage.java.thread("t1").lock("n").unlock()).await;
}

async fn names_with_braces_are_the_same_on_both_sides(stage: &mut Stage) {
    for (name, tag) in
        [("a{b}c", "a{b}c"), ("{x}", "{x}"), ("a}b", "{a}b}"), ("a{b", "a{b"), ("é锁", "{é锁}")]
    {
        let (theirs, ours) = (stage.java.thread("t1").lock(name), stage.rust.lock(name).ttl(LEASE));
        let channel = format!("redisson_lock__channel:{tag}");
        let guard = ours.acquire().await.unwrap();
        let waiting = theirs.lock_for(LEASE);
        stage.heard(&channel).await;
        guard.release().await.unwrap();
        java(waiting).await;
        stage.silence().await;
        let waiting = wait(&ours);
        stage.heard(&channel).await;
        java(theirs.unlock()).await;
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}
