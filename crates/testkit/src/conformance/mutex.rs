//! One at a time: the promise everything else stands on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use leasehold_core::{Client, ErrorKind, Operation, Outcome};
use tokio::task::{JoinSet, yield_now};

use super::{
    Fixture,
    probe::{Stopwatch, busy, in_vain, is_free, joined, refusal, settled, take, until_waiting},
};
use crate::{
    history::{Act, Mode, Recorder, check},
    scripted::Script,
};

/// Eight tasks of two clients add to a counter that is read and written apart.
pub(super) async fn eight_tasks_lose_no_increment(fixture: Fixture) {
    let (clients, name) = ([fixture.client().await, fixture.client().await], fixture.name("counter"));
    let clock = fixture.time();
    let recorder = Recorder::with_time(move || clock.now().as_nanos());
    let counter = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let (client, name, counter, recorder) =
            (clients[task % 2].clone(), name.clone(), counter.clone(), recorder.clone());
        tasks.spawn(async move {
            for round in 0..25 {
                increment(&client, &name, &counter, &recorder, (task * 1000 + round) as u64).await;
            }
        });
    }
    joined(tasks).await;
    assert_eq!(counter.load(Ordering::SeqCst), 200);
    let verdict = check(&recorder.history());
    assert!(verdict.is_sound() && verdict.grants == 200, "{verdict}");
    for client in &clients {
        settled(client, &name).await;
    }
}

async fn increment(client: &Client, name: &str, counter: &AtomicU64, recorder: &Recorder, owner: u64) {
    let asked = recorder.asked(name, owner, Act::Acquire { mode: Mode::Exclusive });
    let guard = client.lock(name).acquire().await.unwrap();
    asked.granted(guard.fence(), guard.deadline().as_nanos());
    let read = counter.load(Ordering::SeqCst);
    yield_now().await;
    counter.store(read + 1, Ordering::SeqCst);
    let asked = recorder.asked(name, owner, Act::Release);
    guard.release().await.unwrap();
    asked.done();
}

/// A lock that is held is not to be had, by its own client or another, until it is released.
pub(super) async fn a_held_lock_is_not_given_twice(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("held"));
    let guard = take(&one.lock(&name)).await;
    assert_eq!(guard.name(), name);
    for client in [&one, &other] {
        assert!(client.lock(&name).try_acquire().await.unwrap().is_none());
        busy(&client.lock(&name)).await;
    }
    guard.release().await.unwrap();
    let guard = take(&other.lock(&name)).await;
    assert!(!is_free(&one.lock(&name)).await);
    guard.release().await.unwrap();
    settled(&one, &name).await;
    settled(&other, &name).await;
}

/// When the time to wait is over, each way to ask says so in its own way, and nothing stays in line.
pub(super) async fn a_wait_that_is_over_ends_as_it_was_asked(fixture: Fixture) {
    let (holder, client, name) = (fixture.client().await, fixture.client().await, fixture.name("over"));
    let guard = take(&holder.lock(&name)).await;
    let lock = client.lock(&name);
    let error = in_vain(async |wait| lock.clone().wait(wait).acquire().await).await;
    assert_eq!(
        (error.kind(), error.operation(), error.name()),
        (ErrorKind::Busy, Operation::Acquire, Some(&*name))
    );
    assert_eq!(error.busy().unwrap().holders[0].id, guard.id());
    let patient = lock.clone().wait("2s");
    assert!(patient.try_acquire().await.unwrap().is_none());
    assert!(matches!(patient.attempt().await.unwrap(), Outcome::Busy(busy) if busy.holders.len() == 1));
    assert_eq!(refusal(lock.wait("0s").acquire().await).kind(), ErrorKind::Busy);
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// A wait with a limit, and one for ever, end when the lock is free.
pub(super) async fn a_wait_ends_when_the_lock_is_free(fixture: Fixture) {
    let (holder, client, name) = (fixture.client().await, fixture.client().await, fixture.name("wait"));
    let lock = client.lock(&name);
    for patient in [lock.clone(), lock.clone().wait("50s")] {
        let guard = take(&holder.lock(&name)).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { patient.acquire().await.unwrap() });
        until_waiting(&holder, &name, 1).await;
        let watch = Stopwatch::start(&fixture);
        guard.release().await.unwrap();
        joined(tasks).await.pop().unwrap().release().await.unwrap();
        watch.was_prompt();
    }
    let guard = take(&holder.lock(&name)).await;
    let trying = lock.clone().wait("50s");
    let (tried, released) = tokio::join!(trying.try_acquire(), guard.release());
    released.unwrap();
    tried.unwrap().expect("it was released in time").release().await.unwrap();
    settled(&client, &name).await;
}

/// Names that look alike to some stores are not the same lock.
pub(super) async fn names_do_not_exclude_each_other(fixture: Fixture) {
    let client = fixture.client().await;
    let mark = fixture.name("x");
    let long = "x".repeat(400);
    let names = [
        "a", "A", "a ", " a", "a.", "á", "a\u{301}", "a/b", "a:b", "a//b", "../a", "{a}", "{a}{b}", "%61",
        "a%00", "a*", "a?", "a'b", "a\"b", "a\\b", "锁", "🔒", &long, "a;--", "a_b", "a-b", "NULL", "0",
        "00",
    ];
    let mut guards = Vec::new();
    for name in names {
        guards.push(take(&client.lock(&format!("{name}{mark}"))).await);
        guards.push(take(&client.lock(&format!("{mark}{name}"))).await);
    }
    for guard in &guards {
        assert!(client.lock(guard.name()).try_acquire().await.unwrap().is_none(), "{}", guard.name());
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// Clients with other prefixes have other locks.
pub(super) async fn prefixes_keep_clients_apart(fixture: Fixture) {
    let name = fixture.name("prefixed");
    let shop = fixture.builder(&Script::new()).await.prefix("shop:").build();
    let bank = fixture.builder(&Script::new()).await.prefix("bank:").build();
    let bare = fixture.client().await;
    let guard = take(&shop.lock(&name)).await;
    assert_eq!(guard.name(), name);
    assert!(is_free(&bank.lock(&name)).await && is_free(&bare.lock(&name)).await);
    assert!(
        !is_free(&bare.lock(&format!("shop:{name}"))).await,
        "a prefix goes before the name, and that is all"
    );
    guard.release().await.unwrap();
}

/// Two tasks pass a lock to and fro, the one asking while the other releases, and never is a wake-up lost.
pub(super) async fn two_thousand_hand_overs_lose_no_wake_up(fixture: Fixture) {
    let (clients, name) = ([fixture.client().await, fixture.client().await], fixture.name("hand-over"));
    let watch = Stopwatch::start(&fixture);
    let mut guard = take(&clients[0].lock(&name)).await;
    for round in 1..=2000 {
        let next = clients[round % 2].lock(&name);
        let mut asking = JoinSet::new();
        asking.spawn(async move { next.acquire().await.unwrap() });
        for _ in 0..round % 7 {
            yield_now().await;
        }
        guard.release().await.unwrap();
        guard = joined(asking).await.pop().unwrap();
    }
    guard.release().await.unwrap();
    watch.was_prompt();
    settled(&clients[0], &name).await;
}

/// A task that acquires and releases without ever having to wait lets other tasks of its thread run.
pub(super) async fn a_task_that_never_waits_lets_others_run(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("busy"));
    let has_run = Arc::new(AtomicBool::new(false));
    let (lock, seen) = (client.lock(&name), has_run.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        for _ in 0..20_000 {
            if seen.load(Ordering::SeqCst) {
                return;
            }
            lock.acquire().await.unwrap().release().await.unwrap();
        }
        panic!("nobody else on this thread got to run meanwhile");
    });
    tasks.spawn(async move { has_run.store(true, Ordering::SeqCst) });
    joined(tasks).await;
    settled(&client, &name).await;
}

/// Work done in a scope holds the lock, and gives it back with its result, its error and its panic.
pub(super) async fn a_scope_releases_whatever_becomes_of_the_work(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("scope"));
    let lock = client.lock(&name);
    let held = lock.scope(async |held| {
        assert!(!is_free(&other.lock(&name)).await);
        Ok::<_, leasehold_core::Error>(held.fence())
    });
    assert!(held.await.unwrap() > 0);
    assert!(is_free(&other.lock(&name)).await, "released when the scope has returned");

    let failed: Result<(), _> = lock.scope(async |_| Err(Failed::Work)).await;
    assert!(matches!(failed, Err(Failed::Work)));
    assert!(is_free(&other.lock(&name)).await);

    let guard = take(&other.lock(&name)).await;
    let busy: Result<(), _> = client.lock(&name).wait("0s").scope(async |_| Err(Failed::Work)).await;
    assert!(matches!(busy, Err(Failed::Lock(ErrorKind::Busy))), "the work was not begun");
    guard.release().await.unwrap();

    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let worked: Result<(), Failed> = lock.scope(async |_| panic!("planted")).await;
        worked
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    settled(&client, &name).await;
}

#[derive(Debug)]
enum Failed {
    Work,
    Lock(ErrorKind),
}

impl From<leasehold_core::Error> for Failed {
    fn from(error: leasehold_core::Error) -> Self {
        Self::Lock(error.kind())
    }
}
