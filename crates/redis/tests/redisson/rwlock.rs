//! The read-write lock.
//!
//! Redisson says `1` when a writer leaves, and one of its own waiters that has tried for the last time but does not sleep
//! yet misses that (seen between two threads of one Redisson: 12 of 150 times). We say `0` after it, which waits for such
//! a one: where a Rust writer leaves, every Java waiter is woken.

use std::time::Duration;

use leasehold_core::{
    ErrorKind, Lock, Owner,
    backend::{BreakOutcome, Loss, Mode},
};
use leasehold_interop::Lock as JavaLock;

use crate::stage::{LEASE, ROUNDS, SHORT, Stage, grows, java, wait};

const CHANNEL: &str = "redisson_rwlock:{rw}";

sentences! {
    readers_of_both_sides_hold_together
    a_rust_writer_waits_for_javas_reader
    a_rust_writer_waits_for_javas_writer
    a_rust_reader_waits_for_javas_writer
    a_java_writer_waits_for_rusts_reader
    a_java_writer_waits_for_rusts_writer
    a_java_reader_waits_for_rusts_writer
    a_java_writer_waits_for_the_last_reader_of_both_sides
    a_rust_writer_waits_for_the_last_reader_of_both_sides
    a_java_writer_that_becomes_a_reader_lets_rust_read
    a_rust_writer_that_becomes_a_reader_wakes_javas_readers
    re_entry_is_counted_on_both_sides
    a_forced_unlock_by_java_is_a_loss_to_rusts_readers_and_writers
    a_java_reader_that_rust_breaks_no_longer_reads
    a_java_writer_that_rust_breaks_no_longer_writes
    rust_sees_javas_readers_and_writers_renew
    java_sees_rusts_writer_renew
    a_rust_reader_outlives_its_lease_beside_javas
    a_dead_java_reader_keeps_a_rust_writer_out_no_longer_than_its_lease
}

/// Java holds, Rust waits, again and again.
async fn woken_by_java(stage: &Stage, theirs: JavaLock<'_>, ours: Lock) {
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

/// Rust holds, Java waits, again and again.
async fn woken_by_rust(stage: &Stage, theirs: JavaLock<'_>, ours: Lock) {
    for _ in 0..ROUNDS {
        let guard = ours.clone().ttl(LEASE).acquire().await.unwrap();
        assert!(!java(theirs.try_lock()).await);
        let mut waiting = theirs.lock_for(LEASE);
        stage.heard(CHANNEL).await;
        assert!(!waiting.is_done());
        guard.release().await.unwrap();
        java(waiting).await;
        java(theirs.unlock()).await;
        stage.silence().await;
    }
}

async fn a_rust_writer_waits_for_javas_reader(stage: &mut Stage) {
    woken_by_java(stage, stage.java.thread("t1").read("rw"), stage.rust.rwlock("rw").write()).await;
}

async fn a_rust_writer_waits_for_javas_writer(stage: &mut Stage) {
    woken_by_java(stage, stage.java.thread("t1").write("rw"), stage.rust.rwlock("rw").write()).await;
}

async fn a_rust_reader_waits_for_javas_writer(stage: &mut Stage) {
    woken_by_java(stage, stage.java.thread("t1").write("rw"), stage.rust.rwlock("rw").read()).await;
}

async fn a_java_writer_waits_for_rusts_reader(stage: &mut Stage) {
    woken_by_rust(stage, stage.java.thread("t1").write("rw"), stage.rust.rwlock("rw").read()).await;
}

async fn a_java_writer_waits_for_rusts_writer(stage: &mut Stage) {
    woken_by_rust(stage, stage.java.thread("t1").write("rw"), stage.rust.rwlock("rw").write()).await;
}

async fn a_java_reader_waits_for_rusts_writer(stage: &mut Stage) {
    woken_by_rust(stage, stage.java.thread("t1").read("rw"), stage.rust.rwlock("rw").write()).await;
}

async fn readers_of_both_sides_hold_together(stage: &mut Stage) {
    let (one, two) = (stage.java.thread("t1").read("rw"), stage.java.thread("t2").read("rw"));
    let rwlock = stage.rust.rwlock("rw");
    java(one.lock_for(LEASE)).await;
    let guard = rwlock.read().try_acquire().await.unwrap().unwrap();
    assert!(java(two.try_lock()).await);
    let other = rwlock.read().try_acquire().await.unwrap().unwrap();
    let holders = stage.holders("rw").await;
    assert_eq!(holders.len(), 4);
    assert!(holders.iter().all(|holder| holder.mode == Mode::Shared));
    assert!(!java(stage.java.thread("t3").write("rw").try_lock()).await);
    assert!(rwlock.write().try_acquire().await.unwrap().is_none());
    java(one.unlock()).await;
    guard.release().await.unwrap();
    java(two.unlock()).await;
    other.release().await.unwrap();
    assert!(java(stage.java.thread("t3").write("rw").try_lock()).await);
    assert!(rwlock.read().try_acquire().await.unwrap().is_none());
    java(stage.java.thread("t3").write("rw").unlock()).await;
}

async fn a_java_writer_waits_for_the_last_reader_of_both_sides(stage: &mut Stage) {
    let (reader, writer) = (stage.java.thread("t1").read("rw"), stage.java.thread("t2").write("rw"));
    for is_rust_last in [true, false, true, false] {
        java(reader.lock_for(LEASE)).await;
        let guard = stage.rust.rwlock("rw").read().ttl(LEASE).acquire().await.unwrap();
        let mut waiting = writer.lock_for(LEASE);
        stage.heard(CHANNEL).await;
        if is_rust_last {
            java(reader.unlock()).await;
            assert!(!waiting.is_done());
            guard.release().await.unwrap();
        } else {
            guard.release().await.unwrap();
            assert!(!waiting.is_done());
            java(reader.unlock()).await;
        }
        java(waiting).await;
        java(writer.unlock()).await;
    }
}

async fn a_rust_writer_waits_for_the_last_reader_of_both_sides(stage: &mut Stage) {
    let (reader, rwlock) = (stage.java.thread("t1").read("rw"), stage.rust.rwlock("rw"));
    for round in 0..ROUNDS {
        java(reader.lock_for(LEASE)).await;
        let guard = rwlock.read().ttl(LEASE).acquire().await.unwrap();
        let waiting = wait(&rwlock.write());
        stage.heard(CHANNEL).await;
        if round % 2 == 0 {
            java(reader.unlock()).await;
            assert!(!waiting.is_finished());
            guard.release().await.unwrap();
        } else {
            guard.release().await.unwrap();
            assert!(!waiting.is_finished());
            java(reader.unlock()).await;
        }
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}

async fn a_java_writer_that_becomes_a_reader_lets_rust_read(stage: &mut Stage) {
    let thread = stage.java.thread("t1");
    java(thread.write("rw").lock_for(LEASE)).await;
    java(thread.read("rw").lock_for(LEASE)).await;
    let rwlock = stage.rust.rwlock("rw");
    assert!(rwlock.read().try_acquire().await.unwrap().is_none());
    java(thread.write("rw").unlock()).await;
    let guard = rwlock.read().try_acquire().await.unwrap().unwrap();
    assert!(rwlock.write().try_acquire().await.unwrap().is_none());
    java(thread.read("rw").unlock()).await;
    guard.release().await.unwrap();
    rwlock.write().try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

async fn a_rust_writer_that_becomes_a_reader_wakes_javas_readers(stage: &mut Stage) {
    let (theirs, rwlock) = (stage.java.thread("t1").read("rw"), stage.rust.rwlock("rw"));
    let other = stage.java.thread("t2").write("rw");
    for _ in 0..ROUNDS {
        let me = Owner::new();
        let writer = rwlock.write().owner(&me).ttl(LEASE).acquire().await.unwrap();
        let reader = rwlock.read().owner(&me).ttl(LEASE).acquire().await.unwrap();
        let waiting = theirs.lock_for(LEASE);
        stage.heard(CHANNEL).await;
        writer.release().await.unwrap();
        java(waiting).await;
        assert!(!java(other.try_lock()).await);
        reader.release().await.unwrap();
        assert!(!java(other.try_lock()).await);
        java(theirs.unlock()).await;
        assert!(java(other.try_lock()).await);
        java(other.unlock()).await;
        stage.silence().await;
    }
}

async fn re_entry_is_counted_on_both_sides(stage: &mut Stage) {
    let (thread, rwlock, me) = (stage.java.thread("t1"), stage.rust.rwlock("rw"), Owner::new());
    for is_write in [false, true] {
        let theirs = if is_write { thread.write("rw") } else { thread.read("rw") };
        java(theirs.lock_for(LEASE)).await;
        java(theirs.lock_for(LEASE)).await;
        assert_eq!(stage.holders("rw").await[0].count, 2);
        java(theirs.unlock()).await;
        assert!(rwlock.write().try_acquire().await.unwrap().is_none());
        java(theirs.unlock()).await;

        let ours = if is_write { rwlock.write() } else { rwlock.read() }.owner(&me).ttl(LEASE);
        let (outer, inner) = (ours.acquire().await.unwrap(), ours.acquire().await.unwrap());
        let mut waiting = thread.write("rw").lock_for(LEASE);
        stage.heard(CHANNEL).await;
        inner.release().await.unwrap();
        assert!(java(stage.java.thread("t2").write("rw").is_locked()).await || !is_write);
        assert!(!waiting.is_done());
        outer.release().await.unwrap();
        java(waiting).await;
        java(thread.write("rw").unlock()).await;
    }
}

async fn a_forced_unlock_by_java_is_a_loss_to_rusts_readers_and_writers(stage: &mut Stage) {
    let (thread, rwlock) = (stage.java.thread("t1"), stage.rust.rwlock("rw"));
    for is_write in [false, true] {
        let ours = if is_write { rwlock.write() } else { rwlock.read() };
        let theirs = if is_write { thread.write("rw") } else { thread.read("rw") };
        let guard = ours.ttl(SHORT).acquire().await.unwrap();
        assert!(java(theirs.force_unlock()).await);
        java(thread.write("rw").lock_for(LEASE)).await;
        assert_eq!(guard.lost().await, Loss::Gone);
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
        assert!(java(thread.write("rw").is_held()).await);
        java(thread.write("rw").unlock()).await;
    }
}

async fn a_java_reader_that_rust_breaks_no_longer_reads(stage: &mut Stage) {
    let (thread, rwlock) = (stage.java.thread("t1"), stage.rust.rwlock("rw"));
    java(thread.read("rw").lock()).await;
    let id = stage.holders("rw").await[0].id;
    let guard = rwlock.read().acquire().await.unwrap();
    assert_eq!(stage.rust.break_hold("rw", id, "it hangs").await.unwrap(), BreakOutcome::Broken);
    assert!(!java(thread.read("rw").is_held()).await);
    assert!(thread.read("rw").unlock().await.unwrap_err().is_not_owner());
    assert_eq!(stage.holders("rw").await.len(), 1);
    guard.check().unwrap();
    guard.release().await.unwrap();
    rwlock.write().try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

async fn a_java_writer_that_rust_breaks_no_longer_writes(stage: &mut Stage) {
    let (thread, other) = (stage.java.thread("t1"), stage.java.thread("t2").read("rw"));
    java(thread.write("rw").lock_for(LEASE)).await;
    let waiting = other.lock_for(LEASE);
    stage.heard(CHANNEL).await;
    let id = stage.holders("rw").await[0].id;
    assert_eq!(stage.rust.break_hold("rw", id, "it hangs").await.unwrap(), BreakOutcome::Broken);
    java(waiting).await;
    assert!(thread.write("rw").unlock().await.unwrap_err().is_not_owner());
    java(other.unlock()).await;
}

async fn rust_sees_javas_readers_and_writers_renew(stage: &mut Stage) {
    let thread = stage.java.thread("t1");
    for theirs in [thread.read("rw"), thread.write("rw")] {
        java(theirs.lock()).await;
        grows(async || stage.holders("rw").await[0].remaining).await;
        java(theirs.unlock()).await;
    }
}

async fn java_sees_rusts_writer_renew(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").write("rw");
    let guard = stage.rust.rwlock("rw").write().ttl(SHORT).acquire().await.unwrap();
    grows(async || Duration::from_millis(u64::try_from(java(theirs.ttl()).await).unwrap())).await;
    guard.release().await.unwrap();
}

async fn a_rust_reader_outlives_its_lease_beside_javas(stage: &mut Stage) {
    let (thread, rwlock) = (stage.java.thread("t1"), stage.rust.rwlock("rw"));
    let guard = rwlock.read().ttl(SHORT).acquire().await.unwrap();
    java(thread.read("rw").lock_for(LEASE)).await;
    let first = guard.deadline();
    let mut deadline = first;
    while first.until(deadline) < 2 * SHORT {
        deadline = guard.renewed(deadline).await;
        guard.check().unwrap();
    }
    java(thread.read("rw").unlock()).await;
    assert!(!java(thread.write("rw").try_lock()).await);
    guard.release().await.unwrap();
    assert!(java(thread.write("rw").try_lock()).await);
    java(thread.write("rw").unlock()).await;
}

async fn a_dead_java_reader_keeps_a_rust_writer_out_no_longer_than_its_lease(stage: &mut Stage) {
    java(stage.java.thread("t1").read("rw").lock()).await;
    let guard = stage.rust.rwlock("rw").read().ttl(LEASE).acquire().await.unwrap();
    let waiting = wait(&stage.rust.rwlock("rw").write());
    stage.heard(CHANNEL).await;
    stage.java.crash().unwrap();
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}
