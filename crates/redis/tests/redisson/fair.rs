//! The fair lock: one line for both kinds of waiter.

use std::time::Duration;

use leasehold_core::{ErrorKind, Guard, backend::BreakOutcome};
use leasehold_interop::{Call, Lock};
use tokio::task::JoinHandle;

use crate::{
    common::eventually,
    stage::{LEASE, ROUNDS, Stage, java, wait},
};

sentences! {
    a_rust_waiter_is_woken_by_javas_unlock
    a_java_waiter_is_woken_by_rusts_release
    the_line_is_served_in_order_when_java_holds
    the_line_is_served_in_order_when_rust_holds
    a_rust_waiter_that_gives_up_lets_java_through
    a_java_waiter_that_gives_up_lets_rust_through
    who_does_not_stand_in_line_waits_for_the_line
    a_break_by_rust_wakes_the_head_of_the_line
    a_forced_unlock_by_java_wakes_the_head_of_the_line
    a_java_waiter_in_line_is_woken_by_a_rust_lock_that_is_not_fair
    a_rust_waiter_outside_the_line_finds_what_java_left_without_a_word
}

/// One who stands in line.
enum Waiter<'a> {
    Java(Lock<'a>, Box<Call<()>>),
    Rust(JoinHandle<Guard>),
}

impl Waiter<'_> {
    fn is_done(&mut self) -> bool {
        match self {
            Self::Java(_, call) => call.is_done(),
            Self::Rust(task) => task.is_finished(),
        }
    }
}

async fn a_rust_waiter_is_woken_by_javas_unlock(stage: &mut Stage) {
    let (theirs, ours) = (stage.java.thread("t1").fair("f"), stage.rust.lock("f").fair());
    for _ in 0..ROUNDS {
        java(theirs.lock_for(LEASE)).await;
        assert!(ours.try_acquire().await.unwrap().is_none());
        let waiting = wait(&ours);
        stage.line("f", 1).await;
        java(theirs.unlock()).await;
        waiting.await.unwrap().release().await.unwrap();
        stage.silence().await;
    }
}

async fn a_java_waiter_is_woken_by_rusts_release(stage: &mut Stage) {
    let (thread, ours) = (stage.java.thread("t1"), stage.rust.lock("f").fair().ttl(LEASE));
    let theirs = thread.fair("f");
    let channel = format!("redisson_lock__channel:{{f}}:{}", thread.holder().await.unwrap());
    for _ in 0..ROUNDS {
        let guard = ours.acquire().await.unwrap();
        assert!(!java(theirs.try_lock()).await);
        let waiting = theirs.lock_for(LEASE);
        stage.line("f", 1).await;
        stage.heard(&channel).await;
        guard.release().await.unwrap();
        java(waiting).await;
        java(theirs.unlock()).await;
        stage.silence().await;
    }
}

/// Lets a line of both kinds form behind a holder.
async fn queue<'a>(stage: &'a Stage, kinds: &[(&'a str, bool)]) -> Vec<Waiter<'a>> {
    let mut line = Vec::new();
    for (place, (thread, is_java)) in kinds.iter().enumerate() {
        line.push(if *is_java {
            let lock = stage.java.thread(thread).fair("f");
            let call = lock.lock_for(LEASE);
            Waiter::Java(lock, Box::new(call))
        } else {
            Waiter::Rust(wait(&stage.rust.lock("f").fair().ttl(LEASE)))
        });
        stage.line("f", place + 1).await;
        if *is_java {
            let holder = stage.java.thread(thread).holder().await.unwrap();
            stage.heard(&format!("redisson_lock__channel:{{f}}:{holder}")).await;
        }
    }
    line
}

/// Serves a line whose holder has just left: each gets it in turn, and nobody behind it.
async fn serve(line: Vec<Waiter<'_>>) {
    let mut line: std::collections::VecDeque<_> = line.into();
    while let Some(first) = line.pop_front() {
        match first {
            Waiter::Java(lock, call) => {
                java(*call).await;
                assert!(line.iter_mut().all(|waiter| !waiter.is_done()));
                java(lock.unlock()).await;
            }
            Waiter::Rust(task) => {
                let guard = task.await.unwrap();
                assert!(line.iter_mut().all(|waiter| !waiter.is_done()));
                guard.release().await.unwrap();
            }
        }
    }
}

async fn the_line_is_served_in_order_when_java_holds(stage: &mut Stage) {
    let theirs = stage.java.thread("t0").fair("f");
    java(theirs.lock_for(LEASE)).await;
    let kinds = [("", false), ("t1", true), ("t2", true), ("", false), ("", false), ("t3", true)];
    let line = queue(stage, &kinds).await;
    java(theirs.unlock()).await;
    serve(line).await;
    assert!(stage.holders("f").await.is_empty());
}

async fn the_line_is_served_in_order_when_rust_holds(stage: &mut Stage) {
    let guard = stage.rust.lock("f").fair().ttl(LEASE).acquire().await.unwrap();
    let kinds = [("t1", true), ("", false), ("", false), ("t2", true), ("t3", true), ("", false)];
    let line = queue(stage, &kinds).await;
    guard.release().await.unwrap();
    serve(line).await;
    assert!(stage.holders("f").await.is_empty());
}

async fn a_rust_waiter_that_gives_up_lets_java_through(stage: &mut Stage) {
    let (holder, theirs) = (stage.java.thread("t0").fair("f"), stage.java.thread("t1").fair("f"));
    java(holder.lock_for(LEASE)).await;
    let gives_up = wait(&stage.rust.lock("f").fair());
    stage.line("f", 1).await;
    let waiting = theirs.lock_for(LEASE);
    stage.line("f", 2).await;
    gives_up.abort();
    stage.line("f", 1).await;
    java(holder.unlock()).await;
    java(waiting).await;
    java(theirs.unlock()).await;
}

async fn a_java_waiter_that_gives_up_lets_rust_through(stage: &mut Stage) {
    let (holder, theirs) = (stage.java.thread("t0").fair("f"), stage.java.thread("t1").fair("f"));
    java(holder.lock_for(LEASE)).await;
    let gives_up = theirs.try_lock_for(Duration::from_secs(1), LEASE);
    stage.line("f", 1).await;
    let waiting = wait(&stage.rust.lock("f").fair());
    assert!(!java(gives_up).await);
    stage.line("f", 1).await;
    java(holder.unlock()).await;
    waiting.await.unwrap().release().await.unwrap();
}

async fn who_does_not_stand_in_line_waits_for_the_line(stage: &mut Stage) {
    let (holder, theirs) = (stage.rust.lock("f").fair().ttl(LEASE), stage.java.thread("t1").fair("f"));
    let guard = holder.acquire().await.unwrap();
    let line = queue(stage, &[("t1", true), ("", false)]).await;
    let outside = wait(&stage.rust.lock("f").ttl(LEASE));
    stage.heard("redisson_lock__channel:{f}").await;
    guard.release().await.unwrap();
    serve(line).await;
    let guard = outside.await.unwrap();
    assert!(!java(theirs.try_lock()).await);
    guard.release().await.unwrap();
}

async fn a_break_by_rust_wakes_the_head_of_the_line(stage: &mut Stage) {
    let holder = stage.java.thread("t0").fair("f");
    java(holder.lock_for(LEASE)).await;
    let line = queue(stage, &[("t1", true), ("", false)]).await;
    let id = stage.holders("f").await[0].id;
    assert_eq!(stage.rust.break_hold("f", id, "it hangs").await.unwrap(), BreakOutcome::Broken);
    // Redisson's fair lock takes any unlock for a success while nobody holds it: so this must wait for the next holder.
    eventually(async || !stage.holders("f").await.is_empty()).await;
    assert!(holder.unlock().await.unwrap_err().is_not_owner());
    serve(line).await;
}

async fn a_forced_unlock_by_java_wakes_the_head_of_the_line(stage: &mut Stage) {
    let guard = stage.rust.lock("f").fair().ttl(LEASE).acquire().await.unwrap();
    let line = queue(stage, &[("", false), ("t1", true)]).await;
    assert!(java(stage.java.thread("t9").fair("f").force_unlock()).await);
    serve(line).await;
    assert_eq!(guard.extend(LEASE).await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_java_waiter_in_line_is_woken_by_a_rust_lock_that_is_not_fair(stage: &mut Stage) {
    let ours = stage.rust.lock("f").ttl(LEASE);
    let guard = ours.acquire().await.unwrap();
    let line = queue(stage, &[("t1", true), ("t2", true)]).await;
    guard.release().await.unwrap();
    serve(line).await;
    ours.try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

async fn a_rust_waiter_outside_the_line_finds_what_java_left_without_a_word(stage: &mut Stage) {
    let theirs = stage.java.thread("t1").fair("f");
    java(theirs.lock_for(LEASE)).await;
    let waiting = wait(&stage.rust.lock("f"));
    stage.heard("redisson_lock__channel:{f}").await;
    // Nobody stands in line, so Redisson publishes nothing; who waits looks again.
    java(theirs.unlock()).await;
    waiting.await.unwrap().release().await.unwrap();
}
