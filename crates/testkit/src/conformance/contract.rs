//! The contract of a store, rule by rule, asked of the store itself.

use std::time::Duration;

use leasehold_core::{
    ErrorKind, Key,
    backend::{
        Attempt, Backend, BreakOutcome, Broken, Busy, Claim, Grant, Holds, LockState, Mode, Release, Renew,
        Renewal,
    },
};

use super::{
    Fixture,
    probe::{Polls, cut_after, eventually, permits, refusal, spec},
};
use crate::scripted::{Fault, Script, Verb};

const LEASE: Duration = Duration::from_secs(30);

fn key(name: &str) -> Key {
    Key::new("", name).unwrap()
}

async fn granted(claim: &mut Box<dyn Claim>) -> Grant {
    match claim.attempt().await.unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("not granted: {busy}"),
    }
}

async fn refused(claim: &mut Box<dyn Claim>) -> Busy {
    match claim.attempt().await.unwrap() {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("granted: {grant:?}"),
    }
}

async fn released(claim: &mut Box<dyn Claim>) {
    assert_eq!(claim.release().await.unwrap(), Release::Released);
}

async fn seen(backend: &dyn Backend, name: &str) -> Option<LockState> {
    backend.inspect(&key(name)).await.unwrap()
}

/// C1: making a claim sends nothing, and every trace of it bears its id.
pub(super) async fn claiming_is_silent(fixture: Fixture) {
    let script = Script::new();
    let (backend, name) = (fixture.backend(&script).await, fixture.name("silent"));
    drop(backend.claim(spec(&name, Mode::Exclusive, LEASE)));
    let asked = spec(&name, Mode::Exclusive, LEASE);
    let mut claim = backend.claim(asked.clone());
    assert_eq!(script.requests(), 0);
    assert!(seen(&*backend, &name).await.is_none());
    let _: Release = claim.release().await.unwrap();
    let mut claim = backend.claim(asked.clone());
    granted(&mut claim).await;
    let state = seen(&*backend, &name).await.unwrap();
    assert_eq!(state.holders[0].id, asked.id);
    assert_eq!(*state.holders[0].who, *asked.who);
    released(&mut claim).await;
}

/// C2: an attempt repeated by the same id finds the earlier result, by the same claim or by one made anew.
pub(super) async fn attempting_is_idempotent_by_id(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("idempotent"));
    let asked = spec(&name, Mode::Exclusive, LEASE);
    let mut claim = backend.claim(asked.clone());
    let first = granted(&mut claim).await;
    for claim in [&mut claim, &mut backend.claim(asked.clone())] {
        let again = granted(claim).await;
        assert_eq!(again.fence, first.fence);
        assert!(again.granted <= first.granted, "a repeated attempt does not prolong the lease");
    }
    let waiting = spec(&name, Mode::Exclusive, LEASE);
    let mut waits = backend.claim(waiting.clone());
    for _ in 0..4 {
        refused(&mut waits).await;
        drop(tokio::time::timeout(Duration::from_millis(2), waits.changed()).await);
    }
    let state = seen(&*backend, &name).await.unwrap();
    assert_eq!((state.holders.len(), state.holders[0].count), (1, 1));
    assert!(
        state.waiters.iter().filter(|waiter| waiter.id == waiting.id).count() <= 1,
        "{:?}",
        state.waiters
    );
    released(&mut claim).await;
    granted(&mut waits).await;
    released(&mut waits).await;
    assert!(seen(&*backend, &name).await.is_none());
}

/// C2, late: what an attempt won and nobody heard of is over with its lease. Repeated after that it wins anew or not at
/// all; it never believes in what others may have by then.
pub(super) async fn a_repeated_attempt_is_not_granted_what_is_over(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("over"));
    let lease = fixture.can().await.min_ttl.max(Duration::from_secs(1));
    let mut claim = backend.claim(spec(&name, Mode::Exclusive, lease));
    granted(&mut claim).await;
    tokio::time::sleep(lease).await;
    let began = tokio::time::Instant::now();
    if let Attempt::Granted(again) = claim.attempt().await.unwrap() {
        let mut other = backend.claim(spec(&name, Mode::Exclusive, lease));
        let answer = other.attempt().await.unwrap();
        // A machine that stood still meanwhile proves nothing.
        if began.elapsed() < again.granted {
            assert!(matches!(answer, Attempt::Busy(_)), "{again:?} {answer:?}");
        }
        let _: Release = other.release().await.unwrap();
    }
    let _: Release = claim.release().await.unwrap();
}

/// C2 for permits: a repeated attempt takes no more of them.
pub(super) async fn a_repeated_attempt_takes_no_more_permits(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("permits"));
    let mut one = backend.claim(spec(&name, permits(1, 2), LEASE));
    for _ in 0..3 {
        granted(&mut one).await;
    }
    let mut two = backend.claim(spec(&name, permits(1, 2), LEASE));
    granted(&mut two).await;
    refused(&mut backend.claim(spec(&name, permits(1, 2), LEASE))).await;
    released(&mut one).await;
    released(&mut two).await;
}

/// C3: an attempt whose answer is lost is an error, and asking again by the same id tells what came of it.
pub(super) async fn only_an_answered_attempt_grants(fixture: Fixture) {
    let script = Script::new();
    let (backend, name) = (fixture.backend(&script).await, fixture.name("answered"));
    let mut claim = backend.claim(spec(&name, Mode::Exclusive, LEASE));
    script.next(Verb::Attempt, [Fault::Lost]);
    assert_eq!(refusal(claim.attempt().await).kind(), ErrorKind::Indeterminate);
    let fence = seen(&*backend, &name).await.unwrap().holders[0].fence;
    assert_eq!(granted(&mut claim).await.fence, fence);
    released(&mut claim).await;
    assert!(seen(&*backend, &name).await.is_none());
}

/// C4: a release after a busy answer completes the next wait, though it came before the wait began.
pub(super) async fn the_bell_remembers(fixture: Fixture) {
    let (backend, other) = (fixture.backend(&Script::new()).await, fixture.backend(&Script::new()).await);
    for armed in [false, true] {
        let name = fixture.name("remembers");
        let mut holder = other.claim(spec(&name, Mode::Exclusive, LEASE));
        granted(&mut holder).await;
        let mut claim = backend.claim(spec(&name, Mode::Exclusive, LEASE));
        refused(&mut claim).await;
        if armed {
            // The first wait may return as soon as the bell is armed; then the store is asked once more.
            drop(tokio::time::timeout(Duration::from_millis(5), claim.changed()).await);
            refused(&mut claim).await;
        }
        released(&mut holder).await;
        rung(&fixture, &*backend, &mut claim).await;
        released(&mut claim).await;
    }
}

/// Waits for the bell until the claim is granted, as the engine does.
async fn rung(fixture: &Fixture, backend: &dyn Backend, claim: &mut Box<dyn Claim>) {
    let poll = backend.info().capabilities.poll;
    loop {
        match tokio::time::timeout(poll * 2, claim.changed()).await {
            Ok(rung) => rung.unwrap(),
            Err(_) => assert!(!fixture.has_bell(), "the bell did not ring within two polling pauses"),
        }
        if let Attempt::Granted(_) = claim.attempt().await.unwrap() {
            return;
        }
    }
}

/// C5: a wait may be dropped at any point and loses nothing by it.
pub(super) async fn a_dropped_wait_loses_no_ring(fixture: Fixture) {
    let (backend, other) = (fixture.backend(&Script::new()).await, fixture.backend(&Script::new()).await);
    for polls in 0..4 {
        let name = fixture.name("dropped");
        let mut holder = other.claim(spec(&name, Mode::Exclusive, LEASE));
        granted(&mut holder).await;
        let mut claim = backend.claim(spec(&name, Mode::Exclusive, LEASE));
        refused(&mut claim).await;
        drop(cut_after(1, Polls::Woken, claim.changed()).await);
        refused(&mut claim).await;
        drop(cut_after(polls, Polls::Eager, claim.changed()).await);
        released(&mut holder).await;
        drop(cut_after(polls, Polls::Eager, claim.changed()).await);
        if !matches!(claim.attempt().await.unwrap(), Attempt::Granted(_)) {
            rung(&fixture, &*backend, &mut claim).await;
        }
        released(&mut claim).await;
    }
}

/// C6: after a lost answer, a release defeats the request that is still on its way, in every mode.
pub(super) async fn a_release_defeats_a_late_request(fixture: Fixture) {
    let can = fixture.can().await;
    let modes = [(true, Mode::Exclusive), (can.shared, Mode::Shared), (can.permits, permits(1, 2))];
    for (_, mode) in modes.into_iter().filter(|(can, _)| *can) {
        let script = Script::new();
        let (backend, name) = (fixture.backend(&script).await, fixture.name("late"));
        let mut claim = backend.claim(spec(&name, mode, LEASE));
        script.next(
            Verb::Attempt,
            [Fault::Late(Duration::from_millis(50)), Fault::Late(Duration::from_millis(80))],
        );
        for _ in 0..2 {
            assert_eq!(refusal(claim.attempt().await).kind(), ErrorKind::Indeterminate);
        }
        let _: Release = claim.release().await.unwrap();
        drop(claim);
        script.landed().await;
        let left = seen(&*backend, &name).await;
        assert!(
            left.is_none_or(|state| state.holders.is_empty() && state.waiters.is_empty()),
            "{mode:?} was won late"
        );
        let mut next = backend.claim(spec(&name, Mode::Exclusive, LEASE));
        granted(&mut next).await;
        released(&mut next).await;
    }
}

/// C6 where the late request arrives before the release: it is found and removed.
pub(super) async fn a_release_removes_what_arrived_late(fixture: Fixture) {
    let script = Script::new();
    let (backend, name) = (fixture.backend(&script).await, fixture.name("arrived"));
    let mut claim = backend.claim(spec(&name, Mode::Exclusive, LEASE));
    script.next(Verb::Attempt, [Fault::Late(Duration::from_millis(20))]);
    assert_eq!(refusal(claim.attempt().await).kind(), ErrorKind::Indeterminate);
    script.landed().await;
    assert_eq!(seen(&*backend, &name).await.unwrap().holders.len(), 1);
    let _: Release = claim.release().await.unwrap();
    assert!(seen(&*backend, &name).await.is_none_or(|state| state.holders.is_empty()));
    granted(&mut backend.claim(spec(&name, Mode::Exclusive, LEASE))).await;
}

/// C7: a grant is for no longer than was asked, and the store lets it end by its own clock.
pub(super) async fn a_grant_ends_by_the_stores_clock(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("clock"));
    let brief = fixture.brief().await;
    let asked = spec(&name, Mode::Exclusive, brief);
    let mut claim = backend.claim(asked.clone());
    let first = granted(&mut claim).await;
    assert!(first.granted <= brief && !first.granted.is_zero());
    let mut next = backend.claim(spec(&name, Mode::Exclusive, LEASE));
    let busy = refused(&mut next).await;
    assert!(busy.holders[0].remaining <= brief && busy.retry_after.is_some(), "{busy:?}");
    eventually(async || seen(&*backend, &name).await.is_none_or(|state| state.holders.is_empty())).await;
    assert!(granted(&mut next).await.fence > first.fence);
    assert_eq!(renewed(&*backend, &name, &[&asked.id]).await, [Renewal::Lost(None)]);
    released(&mut next).await;
}

async fn renewed(backend: &dyn Backend, name: &str, ids: &[&leasehold_core::ClaimId]) -> Vec<Renewal> {
    let renew =
        |id: &&leasehold_core::ClaimId| Renew { key: key(name), id: **id, mode: Mode::Exclusive, ttl: LEASE };
    let batch: Vec<Renew> = ids.iter().map(renew).collect();
    backend.renew(&batch).await.into_iter().map(|renewal| renewal.unwrap()).collect()
}

/// Renewal answers each lease in its order, touches no other, makes no lock and shortens no lease.
pub(super) async fn a_renewal_touches_only_its_own(fixture: Fixture) {
    let backend = fixture.backend(&Script::new()).await;
    let names = [fixture.name("mine"), fixture.name("never"), fixture.name("mine")];
    let specs = names.each_ref().map(|name| spec(name, Mode::Exclusive, LEASE));
    let mut claims = [backend.claim(specs[0].clone()), backend.claim(specs[2].clone())];
    for claim in &mut claims {
        granted(claim).await;
    }
    let renew = |at: usize, ttl: Duration| Renew {
        key: key(&names[at]),
        id: specs[at].id,
        mode: Mode::Exclusive,
        ttl,
    };
    let answers = backend.renew(&[renew(0, LEASE * 2), renew(1, LEASE), renew(2, LEASE)]).await;
    let answers: Vec<Renewal> = answers.into_iter().map(|answer| answer.unwrap()).collect();
    assert!(matches!(answers[0], Renewal::Renewed { granted } if granted > LEASE && granted <= LEASE * 2));
    assert_eq!(answers[1], Renewal::Lost(None));
    assert!(matches!(answers[2], Renewal::Renewed { .. }));
    assert!(seen(&*backend, &names[1]).await.is_none(), "a renewal makes no lock");
    drop(backend.renew(&[renew(0, LEASE / 10)]).await);
    let left = seen(&*backend, &names[0]).await.unwrap().holders[0].remaining;
    assert!(left > LEASE, "a renewal shortens no lease: {left:?} left");
    assert!(backend.renew(&[]).await.is_empty());
    for claim in &mut claims {
        released(claim).await;
    }
}

/// A release is idempotent, by the claim and by its id alone, and never touches another's lock.
pub(super) async fn a_release_touches_only_its_own(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("release"));
    let asked = spec(&name, Mode::Exclusive, LEASE);
    let mut claim = backend.claim(asked.clone());
    granted(&mut claim).await;
    released(&mut claim).await;
    let mut next = backend.claim(spec(&name, Mode::Exclusive, LEASE));
    granted(&mut next).await;
    let _: Release = claim.release().await.unwrap();
    assert_eq!(backend.release(&key(&name), asked.id, Mode::Exclusive).await.unwrap(), Release::Gone(None));
    assert_eq!(seen(&*backend, &name).await.unwrap().holders.len(), 1);
    released(&mut next).await;
}

/// A count is written absolutely, and only by who holds the lock.
pub(super) async fn a_count_is_written_absolutely(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("count"));
    let mut claim = backend.claim(spec(&name, Mode::Exclusive, LEASE));
    granted(&mut claim).await;
    for count in [2, 2, 5, 1] {
        let holds = Holds { exclusive: count, shared: 0 };
        assert!(matches!(claim.recount(holds).await.unwrap(), Renewal::Renewed { .. }));
        assert_eq!(seen(&*backend, &name).await.unwrap().holders[0].count, count);
    }
    let mut stranger = backend.claim(spec(&name, Mode::Exclusive, LEASE));
    refused(&mut stranger).await;
    assert_eq!(stranger.recount(Holds { exclusive: 2, shared: 0 }).await.unwrap(), Renewal::Lost(None));
    let _: Release = stranger.release().await.unwrap();
    released(&mut claim).await;
    assert_eq!(claim.recount(Holds { exclusive: 2, shared: 0 }).await.unwrap(), Renewal::Lost(None));
    assert!(seen(&*backend, &name).await.is_none());
}

/// C8: fences grow in the order of grants, by whatever each ended.
pub(super) async fn fences_grow_at_the_store(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("fences"));
    let mut last = 0;
    for round in 0..12 {
        let asked = spec(&name, Mode::Exclusive, LEASE);
        let mut claim = backend.claim(asked.clone());
        let grant = granted(&mut claim).await;
        assert!(grant.fence > last, "{} after {last}", grant.fence);
        last = grant.fence;
        if round % 3 == 0 {
            let broken = Broken { by: "test".into(), why: "test".into() };
            let outcome = backend.break_hold(&key(&name), asked.id, &broken).await.unwrap();
            assert_eq!(outcome, BreakOutcome::Broken);
            assert_eq!(renewed(&*backend, &name, &[&asked.id]).await, [Renewal::Lost(Some(broken.clone()))]);
            assert_eq!(claim.release().await.unwrap(), Release::Gone(Some(broken)));
        } else {
            released(&mut claim).await;
        }
    }
}
