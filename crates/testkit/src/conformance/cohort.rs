//! A cohort hands its lock on within one client, and nobody can tell but by the store's silence. How that ends is in
//! `cohort_end`.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    ClaimId, ErrorKind, Lock, Owner,
    backend::{Attempt, Backend, ClaimSpec, Grant, Mode, Release},
};
use tokio::task::{JoinSet, yield_now};

use super::{
    Fixture,
    probe::{Stopwatch, busy, eventually, is_free, joined, refusal, settled, spec, take},
};
use crate::{
    history::{Act, Mode as Held, Recorder, check},
    scripted::{Script, Verb},
};

/// What a member of a cohort held: when that was, as the fence has it, and what the store knew it as.
pub(super) type Member = (u64, ClaimId);

/// Asks for a lock in so many tasks, each of which holds it for a moment. Comes back when all of them stand in line.
pub(super) async fn members(lock: &Lock, count: usize) -> JoinSet<Member> {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let lock = lock.clone();
        tasks.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let member = (guard.fence(), guard.id());
            guard.check().unwrap();
            yield_now().await;
            guard.release().await.unwrap();
            member
        });
    }
    eventually(async || busy(lock).await.waiters == count).await;
    tasks
}

/// One after the other, by their fences, which must differ.
pub(super) async fn in_order(tasks: JoinSet<Member>) -> Vec<Member> {
    let count = tasks.len();
    let members: BTreeSet<Member> = joined(tasks).await.into_iter().collect();
    let fences: BTreeSet<u64> = members.iter().map(|(fence, _)| *fence).collect();
    assert_eq!(fences.len(), count, "every member has a fence of its own: {members:?}");
    members.into_iter().collect()
}

/// Many waiters of one client cost the store one acquisition per block; each has a fence of its own, in the order in
/// which they came, and they are woken by each other.
pub(super) async fn a_lock_passes_on_without_a_request(fixture: Fixture) {
    let script = Script::new();
    let (client, other, name) =
        (fixture.scripted(&script).await, fixture.client().await, fixture.name("passes"));
    let lock = client.lock(&name).cohort(8);
    let first = take(&lock).await;
    let before = (first.fence(), first.id());
    let tasks = members(&lock, 23).await;
    assert_eq!(busy(&lock).await.holders[0].id, first.id(), "who stands behind a cohort is told of it");
    assert!(!is_free(&other.lock(&name)).await);
    let watch = Stopwatch::start(&fixture);
    first.release().await.unwrap();
    let held = in_order(tasks).await;
    watch.was_prompt();
    assert_eq!(script.calls(Verb::Attempt), 3, "24 acquisitions, 8 for each request");
    for block in 0..3 {
        let members: Vec<Member> = [before].into_iter().chain(held.clone()).skip(block * 8).take(8).collect();
        let (fence, id) = members[0];
        let expected: Vec<Member> = (fence..fence + 8).map(|fence| (fence, id)).collect();
        assert_eq!(members, expected, "one acquisition and a fence each");
    }
    settled(&client, &name).await;
    let next = take(&other.lock(&name)).await;
    assert!(next.fence() > held[22].0, "{} after {}", next.fence(), held[22].0);
    next.release().await.unwrap();
}

/// With nobody to pass it on to, a lock goes back to the store, and the next fence is beyond the whole block.
pub(super) async fn a_lone_member_keeps_nobody_out(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("lone"));
    let alone = take(&client.lock(&name).cohort(64)).await;
    let fence = alone.fence();
    alone.release().await.unwrap();
    settled(&client, &name).await;
    let next = take(&other.lock(&name)).await;
    assert!(next.fence() >= fence + 64, "{} after a block of 64 from {fence}", next.fence());
    assert!(!is_free(&client.lock(&name).cohort(64)).await);
    next.release().await.unwrap();
    let last = take(&client.lock(&name).cohort(64)).await;
    drop(last);
    settled(&client, &name).await;
}

/// Tasks of two clients, and of one that asks for no cohort, keep a sound history.
pub(super) async fn eight_tasks_of_two_cohorts_lose_no_increment(fixture: Fixture) {
    let (one, two, name) = (fixture.client().await, fixture.client().await, fixture.name("counter"));
    let locks = [one.lock(&name).cohort(4), two.lock(&name).cohort(4), two.lock(&name)];
    let clock = fixture.time();
    let recorder = Recorder::with_time(move || clock.now().as_nanos());
    let counter = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let lock = locks[task % 3].clone();
        let (counter, recorder) = (counter.clone(), recorder.clone());
        tasks.spawn(async move {
            for round in 0..25 {
                increment(&lock, &counter, &recorder, (task * 1000 + round) as u64).await;
            }
        });
    }
    joined(tasks).await;
    assert_eq!(counter.load(Ordering::SeqCst), 200);
    let verdict = check(&recorder.history());
    assert!(verdict.is_sound() && verdict.grants == 200, "{verdict}");
    settled(&one, &name).await;
    settled(&two, &name).await;
}

async fn increment(lock: &Lock, counter: &AtomicU64, recorder: &Recorder, owner: u64) {
    let asked = recorder.asked(lock.name(), owner, Act::Acquire { mode: Held::Exclusive });
    let guard = lock.acquire().await.unwrap();
    asked.granted(guard.fence(), guard.deadline().as_nanos());
    let read = counter.load(Ordering::SeqCst);
    yield_now().await;
    counter.store(read + 1, Ordering::SeqCst);
    let asked = recorder.asked(lock.name(), owner, Act::Release);
    // Some wait for the answer and some do not.
    if owner.is_multiple_of(2) {
        guard.release().await.unwrap();
    } else {
        drop(guard);
    }
    asked.done();
}

/// Another client that waits has its turn after one block at most, and neither is left out in the end.
pub(super) async fn cohorts_take_turns(fixture: Fixture) {
    let (one, two, name) = (fixture.client().await, fixture.client().await, fixture.name("turns"));
    let (here, there) = (one.lock(&name).cohort(3), two.lock(&name).cohort(3));
    let first = take(&here).await;
    let begun = (first.fence(), first.id());
    let mut tasks = members(&here, 8).await;
    let waiting = there.clone();
    for _ in 0..9 {
        let waiting = waiting.clone();
        tasks.spawn(async move {
            let guard = waiting.acquire().await.unwrap();
            let member = (guard.fence(), guard.id());
            guard.release().await.unwrap();
            member
        });
    }
    // The head of the other client's line stands in the store's, and the others behind it.
    eventually(async || one.inspect(&name).await.unwrap().is_some_and(|state| state.waiters.len() == 1))
        .await;
    eventually(async || busy(&there).await.waiters == 9).await;
    first.release().await.unwrap();
    let held: Vec<Member> = [begun].into_iter().chain(in_order(tasks).await).collect();
    let blocks: Vec<_> = held.chunk_by(|(_, one), (_, next)| one == next).collect();
    assert!(blocks.iter().all(|block| block.len() == 3), "nobody of either waits elsewhere: {held:?}");
    assert_eq!(blocks[0][0].1, begun.1);
    let turn = blocks[1][0].1.client();
    assert!(turn != begun.1.client(), "whoever stood in the store's line is next: {held:?}");
    settled(&one, &name).await;
    settled(&two, &name).await;
}

/// Whoever asks for another lease, label or size, or for no cohort, gets an acquisition of its own.
pub(super) async fn only_equals_are_of_one_cohort(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("equals"));
    let lock = || client.lock(&name).cohort(8);
    let others = [
        lock().ttl("29s"),
        lock().label("nightly"),
        lock().no_renew(),
        client.lock(&name).cohort(7),
        client.lock(&name),
    ];
    for other in others {
        let first = take(&lock()).await;
        let id = first.id();
        let strangers = members(&other, 1).await;
        let equals = members_beside(&lock(), &other).await;
        first.release().await.unwrap();
        let (stranger, equal) = (in_order(strangers).await[0], in_order(equals).await[0]);
        assert_eq!(equal.1, id, "passed on, past one who is no part of it");
        assert!(stranger.1 != id && stranger.0 > equal.0, "{stranger:?} after {equal:?}");
        settled(&client, &name).await;
    }
}

/// One member beside one who waits already.
async fn members_beside(lock: &Lock, other: &Lock) -> JoinSet<Member> {
    let mut tasks = JoinSet::new();
    let member = lock.clone();
    tasks.spawn(async move {
        let guard = member.acquire().await.unwrap();
        let member = (guard.fence(), guard.id());
        guard.release().await.unwrap();
        member
    });
    eventually(async || busy(other).await.waiters == 2).await;
    tasks
}

/// Cohorts of no size, of too many, of what is shared, and in company they do not bear, are refused at once.
pub(super) async fn what_cannot_be_a_cohort_is_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("refused"));
    let lock = || client.lock(&name).cohort(8);
    let refused = [
        client.lock(&name).cohort(0),
        client.lock(&name).cohort(65),
        lock().fair(),
        lock().max_hold("10s"),
        lock().owner(&Owner::new()),
        client.rwlock(&name).read().cohort(8),
        client.semaphore(&name, 3).permits(1).cohort(8),
    ];
    for lock in refused {
        let error = refusal(lock.acquire().await);
        assert_eq!((error.kind(), error.name()), (ErrorKind::Config, Some(&*name)), "{error}");
    }
    assert_eq!(refusal(lock().ticket().await).kind(), ErrorKind::Config);
    assert_eq!(script.requests(), 0, "what is refused is not sent");
    // A cohort of one is a lock like any other.
    let me = Owner::new();
    drop(take(&client.lock(&name).cohort(1).fair().owner(&me)).await);
    drop(client.lock(&name).cohort(1).max_hold("10s").acquire().await.unwrap());
    settled(&client, &name).await;
}

/// At the store: a block of fences is reserved once, and its first is found again by the same id.
pub(super) async fn a_repeated_attempt_finds_its_first_fence(fixture: Fixture) {
    let (store, name) = (fixture.backend(&Script::new()).await, fixture.name("block"));
    let block = |fences| {
        let spec = spec(&name, Mode::Exclusive, Duration::from_secs(60));
        Arc::new(ClaimSpec { fences, ..ClaimSpec::clone(&spec) })
    };
    let mut last = 0;
    for fences in [5, 1, 64, 64, 2, 1] {
        let spec = block(fences);
        let grant = granted(&store, &spec).await;
        assert!(grant.fence > last, "{} after {last}", grant.fence);
        assert_eq!(granted(&store, &spec).await.fence, grant.fence, "asked again, of {fences}");
        last = grant.fence + fences - 1;
        assert_eq!(store.release(&spec.key, spec.id, spec.mode).await.unwrap(), Release::Released);
    }
}

async fn granted(store: &Arc<dyn Backend>, spec: &Arc<ClaimSpec>) -> Grant {
    match store.claim(spec.clone()).attempt().await.unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("it was not to be had: {busy}"),
    }
}
