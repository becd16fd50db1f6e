//! So many at a time, and every permit is a lease.

use leasehold_core::{ErrorKind, backend::Kind};
use tokio::task::{JoinSet, yield_now};

use super::{
    Fixture,
    probe::{Stopwatch, ghost, is_free, joined, permits, refusal, settled, state, take, until_waiting},
};
use crate::{
    history::{Act, Mode, Recorder, check},
    scripted::Script,
};

/// As many are out as there are, never more, in any portions.
pub(super) async fn permits_are_all_that_is_given(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("permits"));
    let (mine, theirs) = (one.semaphore(&name, 3), other.semaphore(&name, 3));
    let two = take(&mine.permits(2)).await;
    assert!(!is_free(&theirs.permits(2)).await, "all or none");
    let last = take(&theirs.permits(1)).await;
    assert!(!is_free(&mine.permits(1)).await && !is_free(&theirs.permits(1)).await);
    let found = state(&one, &name).await;
    assert_eq!((found.kind, found.holders.len()), (Kind::Semaphore { of: 3 }, 2));
    two.release().await.unwrap();
    assert!(is_free(&theirs.permits(2)).await && !is_free(&theirs.permits(3)).await);
    last.release().await.unwrap();
    take(&mine.permits(3)).await.release().await.unwrap();
    settled(&one, &name).await;
    settled(&other, &name).await;
}

/// Numbers that cannot be granted are refused, and nothing is sent.
pub(super) async fn impossible_numbers_are_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("numbers"));
    for (take, of) in [(0, 3), (4, 3), (1, 0), (0, 0), (u32::MAX, 1)] {
        let error = refusal(client.semaphore(&name, of).permits(take).acquire().await);
        assert_eq!(error.kind(), ErrorKind::Config, "{take} of {of}: {error}");
    }
    assert_eq!(script.requests(), 0);
    take(&client.semaphore(&name, u32::MAX).permits(u32::MAX)).await.release().await.unwrap();
}

/// One who waits for several permits gets them when enough have come back, one by one.
pub(super) async fn a_waiter_for_several_is_woken_when_enough_are_back(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("several"));
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(take(&client.semaphore(&name, 4).permits(1)).await);
    }
    let lock = other.semaphore(&name, 4).permits(3);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { lock.acquire().await.unwrap() });
    until_waiting(&client, &name, 1).await;
    let watch = Stopwatch::start(&fixture);
    for (back, guard) in taken.into_iter().enumerate() {
        assert!(back >= 3 || waiting.try_join_next().is_none(), "{back} are back");
        guard.release().await.unwrap();
    }
    joined(waiting).await.pop().unwrap().release().await.unwrap();
    watch.was_prompt();
    settled(&other, &name).await;
}

/// The permits of a holder that died come back when its lease ends.
pub(super) async fn a_dead_holders_permits_come_back(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("dead"));
    let living = take(&client.semaphore(&name, 3).permits(1)).await;
    let dead = ghost(&fixture, &name, permits(2, 3), fixture.brief().await).await;
    assert!(!is_free(&client.semaphore(&name, 3).permits(1)).await);
    let guard = client.semaphore(&name, 3).permits(2).acquire().await.unwrap();
    assert!(guard.fence() > dead.fence);
    living.check().unwrap();
    assert!(!is_free(&client.semaphore(&name, 3).permits(1)).await, "no more came back than had been out");
    guard.release().await.unwrap();
    living.release().await.unwrap();
    settled(&client, &name).await;
}

/// Portions at random: what is believed to be out never exceeds what there is.
pub(super) async fn permits_are_conserved(fixture: Fixture) {
    let (clients, name) = ([fixture.client().await, fixture.client().await], fixture.name("conserved"));
    let clock = fixture.time();
    let recorder = Recorder::with_time(move || clock.now().as_nanos());
    let mut tasks = JoinSet::new();
    for task in 0..6 {
        let (semaphore, recorder, name) =
            (clients[task % 2].semaphore(&name, 4), recorder.clone(), name.clone());
        tasks.spawn(async move {
            for round in 0..15 {
                let (owner, take) = ((task * 1000 + round) as u64, (1 + (task + round) % 3) as u32);
                let mode = Mode::Permits { take, of: 4 };
                let asked = recorder.asked(&name, owner, Act::Acquire { mode });
                let guard = semaphore.permits(take).acquire().await.unwrap();
                asked.granted(guard.fence(), guard.deadline().as_nanos());
                yield_now().await;
                let asked = recorder.asked(&name, owner, Act::Release);
                guard.release().await.unwrap();
                asked.done();
            }
        });
    }
    joined(tasks).await;
    let verdict = check(&recorder.history());
    assert!(verdict.is_sound() && verdict.grants == 90, "{verdict}");
    take(&clients[0].semaphore(&name, 4).permits(4)).await.release().await.unwrap();
    settled(&clients[0], &name).await;
    settled(&clients[1], &name).await;
}
