//! Faults of a store: what the caller is told, and that nothing is left behind.

use std::time::Duration;

use leasehold_core::{ErrorKind, Operation, Retry};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, is_free, joined, refusal, settled, state, take, until_waiting, waiters},
};
use crate::scripted::{Fault, Script, Verb};

/// An error of the store comes out as it is, with what was being done and to what.
pub(super) async fn an_error_says_what_was_done_to_what(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("error"));
    for (kind, retry) in [
        (ErrorKind::Denied, Retry::No),
        (ErrorKind::Internal, Retry::No),
        (ErrorKind::Conflict, Retry::No),
        (ErrorKind::Unavailable, Retry::Later),
        (ErrorKind::Indeterminate, Retry::Now),
    ] {
        script.next(Verb::Attempt, [Fault::Err(kind)]);
        let error = refusal(client.lock(&name).try_acquire().await);
        assert_eq!((error.kind(), error.retry(), error.operation()), (kind, retry, Operation::Acquire));
        assert_eq!(error.name(), Some(&*name));
        let message = error.to_string();
        assert!(message.contains(&name) && !message.ends_with('.'), "{message}");
        settled(&client, &name).await;
    }
    script.next(Verb::Inspect, [Fault::Err(ErrorKind::Unavailable)]);
    assert_eq!(refusal(client.inspect(&name).await).operation(), Operation::Inspect);
    script.next(Verb::List, [Fault::Err(ErrorKind::Denied)]);
    assert_eq!(refusal(client.list("", None, 10).await).kind(), ErrorKind::Denied);
}

/// An attempt whose answer is lost never leaves a lock behind, whether it had arrived or arrives later.
pub(super) async fn a_lost_answer_leaves_no_lock_behind(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("answer"));
    for fault in
        [Fault::Lost, Fault::Late(Duration::from_millis(40)), Fault::Late(Duration::from_millis(400))]
    {
        for limit in ["0s", "20ms", "10s"] {
            script.next(Verb::Attempt, [fault]);
            match client.lock(&name).wait(limit).acquire().await {
                Ok(guard) => {
                    assert_eq!(state(&other, &name).await.holders.len(), 1);
                    guard.check().unwrap();
                    guard.release().await.unwrap();
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
            }
            script.landed().await;
            settled(&client, &name).await;
            assert!(is_free(&other.lock(&name)).await, "{fault:?} with a wait of {limit}");
        }
    }
}

/// One who waits bears with a store that is away for a moment, and is served when its turn comes.
pub(super) async fn one_who_waits_bears_with_the_store(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("bears"));
    for fault in [Fault::Err(ErrorKind::Unavailable), Fault::Lost, Fault::Late(Duration::from_millis(30))] {
        let holder = take(&other.lock(&name)).await;
        let lock = client.lock(&name);
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { lock.acquire().await.unwrap() });
        until_waiting(&other, &name, 1).await;
        script.next(Verb::Attempt, [fault; 3]);
        holder.release().await.unwrap();
        let guard = joined(waiting).await.pop().unwrap();
        script.landed().await;
        let found = state(&other, &name).await;
        assert_eq!((found.holders.len(), found.waiters.len()), (1, 0), "{fault:?}");
        assert_eq!(found.holders[0].id, guard.id());
        guard.release().await.unwrap();
        settled(&client, &name).await;
    }
}

/// A bell that is deaf, late or broken costs time, never the lock.
pub(super) async fn a_bad_bell_costs_time_only(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("bell"));
    let faults = [
        Fault::Never,
        Fault::Lost,
        Fault::Err(ErrorKind::Unavailable),
        Fault::Slow(Duration::from_millis(20)),
    ];
    for fault in faults {
        let holder = take(&other.lock(&name).ttl(fixture.brief().await)).await;
        let lock = client.lock(&name);
        script.always(Verb::Changed, fault);
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { lock.acquire().await.unwrap() });
        eventually(async || client.stats().waiting == 1).await;
        holder.release().await.unwrap();
        joined(waiting).await.pop().unwrap().release().await.unwrap();
        script.heal();
        settled(&client, &name).await;
    }
}

/// A release the store did not take is tried again in the background until it has.
pub(super) async fn a_release_is_tried_until_the_store_takes_it(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("retry"));
    for fault in [Fault::Err(ErrorKind::Unavailable), Fault::Lost, Fault::Late(Duration::from_millis(70))] {
        let guard = take(&client.lock(&name)).await;
        script.next(Verb::Release, [fault; 2]);
        if let Err(error) = guard.release().await {
            assert_eq!(
                (error.kind(), error.operation()),
                (ErrorKind::Unavailable, Operation::Release),
                "{error}"
            );
        }
        settled(&client, &name).await;
        script.landed().await;
        script.next(Verb::Release, [fault; 2]);
        drop(take(&client.lock(&name)).await);
        settled(&client, &name).await;
        // A late release of an old hold must not touch a new one.
        let next = take(&other.lock(&name)).await;
        script.landed().await;
        assert_eq!(state(&other, &name).await.holders[0].id, next.id());
        next.release().await.unwrap();
    }
}

/// A renewal that arrives after the release makes nothing.
pub(super) async fn a_late_renewal_makes_no_lock(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("renewal"));
    let guard = take(&client.lock(&name)).await;
    script.next(Verb::Renew, [Fault::Late(Duration::from_millis(60))]);
    assert_eq!(refusal(guard.extend("50s").await).kind(), ErrorKind::Indeterminate);
    guard.check().unwrap();
    guard.release().await.unwrap();
    let next = take(&other.lock(&name)).await;
    script.landed().await;
    assert_eq!(state(&other, &name).await.holders.len(), 1);
    next.release().await.unwrap();
    settled(&client, &name).await;
}

/// Entering again when the store does not answer leaves the lock as it was, and it can be given back.
pub(super) async fn a_failed_re_entry_leaves_the_lock_as_it_was(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("reentry"));
    let me = leasehold_core::Owner::new();
    for fault in [Fault::Err(ErrorKind::Unavailable), Fault::Lost, Fault::Late(Duration::from_millis(50))] {
        let guard = take(&client.lock(&name).owner(&me)).await;
        script.next(Verb::Recount, [fault]);
        if let Err(error) = client.lock(&name).owner(&me).try_acquire().await {
            assert_eq!(error.operation(), Operation::Reenter, "{error}");
        }
        client.idle().await;
        guard.check().unwrap();
        // One that is late may land at any time until now, and after it was made good: it adds nothing but its one.
        let most = if matches!(fault, Fault::Late(_)) { 2 } else { 1 };
        let count = state(&other, &name).await.holders[0].count;
        assert!((1..=most).contains(&count), "{count} after {fault:?}");
        guard.release().await.unwrap();
        script.landed().await;
        settled(&client, &name).await;
    }
}

/// How long a store is borne with counts from the first request that it leaves unanswered, not from its last answer: one
/// who was told to wait for longer than its lease had no reason to ask.
pub(super) async fn one_fault_after_a_long_wait_is_borne(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("long"));
    let holder = take(&other.lock(&name)).await;
    let lock = client.lock(&name).ttl("2s");
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { lock.acquire().await.unwrap() });
    until_waiting(&other, &name, 1).await;
    let asked = script.calls(Verb::Attempt);
    while script.calls(Verb::Attempt) == asked {
        // So long that the next question is the one below, whichever way the store wakes those who wait.
        fixture.time().pause(Duration::from_millis(500)).await;
    }
    script.next(Verb::Attempt, [Fault::Err(ErrorKind::Unavailable)]);
    let asked = script.calls(Verb::Attempt);
    eventually(async || script.calls(Verb::Attempt) > asked).await;
    holder.release().await.unwrap();
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    settled(&client, &name).await;
}

/// A bell that cannot be set up makes the looks rarer; whoever goes away, or is shut down, does not wait for the next.
pub(super) async fn who_waits_with_a_deaf_bell_ends_at_once(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("deaf"));
    let holder = take(&other.lock(&name)).await;
    script.always(Verb::Changed, Fault::Err(ErrorKind::Unavailable));
    let lock = client.lock(&name);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { lock.acquire().await });
    // Until the pauses are as long as they get.
    eventually(async || script.calls(Verb::Changed) > 12).await;
    let before = fixture.time().now();
    waiting.shutdown().await;
    client.idle().await;
    let passed = before.until(fixture.time().now());
    assert!(passed < Duration::from_millis(100), "{passed:?} for going away");
    assert_eq!(waiters(&other, &name).await, 0);
    holder.release().await.unwrap();
    settled(&client, &name).await;
}
