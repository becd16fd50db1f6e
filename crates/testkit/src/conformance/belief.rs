//! What a holder believes, to the millisecond: on a clock that the test turns.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use leasehold_core::{Error, ErrorKind, Operation, State, backend::Loss};

use super::{
    Fixture,
    loss::assert_lost,
    probe::{Polls, cut_after, is_free, refusal, settled, take, until_waiting},
};
use crate::scripted::{Fault, Script, Verb};

/// Timers have a grain of a millisecond.
const GRAIN: Duration = Duration::from_millis(2);

/// Watches a guard until it is lost: the states it went through, and that none came after its deadline.
async fn watch(fixture: &Fixture, guard: &leasehold_core::Guard) -> Vec<State> {
    let clock = fixture.time();
    let mut states = vec![guard.state()];
    while *states.last().expect("it begins with one") != State::Lost {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let (now, state) = (clock.now(), guard.state());
        assert_eq!(state == State::Lost, now >= guard.deadline(), "{state:?} at {now:?}");
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
    states
}

/// Renewals that fail bring doubt, then loss at the deadline and never later; nobody else has the lock before.
pub(super) async fn failing_renewals_bring_doubt_then_loss(fixture: Fixture) {
    for fault in [Fault::Err(ErrorKind::Unavailable), Fault::Err(ErrorKind::Indeterminate), Fault::Never] {
        let script = Script::new();
        let (client, other, name) =
            (fixture.scripted(&script).await, fixture.client().await, fixture.name("doubt"));
        let guard = take(&client.lock(&name).ttl("9s")).await;
        script.always(Verb::Renew, fault);
        let taken_over = async {
            let next = other.lock(&name).acquire().await.unwrap();
            (fixture.time().now(), next)
        };
        let told = async {
            let loss = guard.lost().await;
            (fixture.time().now(), loss)
        };
        let (states, (told, loss), (taken_at, next)) =
            tokio::join!(watch(&fixture, &guard), told, taken_over);
        assert_eq!(states, [State::Held, State::Doubt, State::Lost], "{fault:?}");
        assert_eq!(loss, Loss::Expired);
        assert!(told >= guard.deadline() && told <= guard.deadline().after(GRAIN), "told at {told:?}");
        assert!(taken_at > guard.deadline(), "belief ended before somebody else began");
        assert_lost(&guard, &Loss::Expired);
        script.heal();
        drop(guard);
        next.release().await.unwrap();
        other.idle().await;
    }
}

/// A renewal that succeeds again takes the doubt away.
pub(super) async fn a_renewal_that_succeeds_again_ends_doubt(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("recovers"));
    let guard = take(&client.lock(&name).ttl("9s")).await;
    script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    while guard.state() == State::Held {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(guard.state(), State::Doubt);
    guard.check().unwrap();
    script.heal();
    let known = guard.deadline();
    assert!(guard.renewed(known).await > known);
    assert_eq!(guard.state(), State::Held);
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// A renewal answered after the deadline does not bring a lost lock back.
pub(super) async fn a_late_answer_does_not_revive_a_lost_lock(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("late-answer"));
    let guard = take(&client.lock(&name).ttl("9s")).await;
    script.next(Verb::Renew, [Fault::Slow(Duration::from_secs(30))]);
    assert_eq!(guard.lost().await, Loss::Expired);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_lost(&guard, &Loss::Expired);
    drop(guard);
    settled(&client, &name).await;
}

/// Belief counts from before the request was sent, not from its answer.
pub(super) async fn belief_counts_from_before_the_request(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("slow"));
    script.next(Verb::Attempt, [Fault::Slow(Duration::from_secs(5))]);
    let guard = client.lock(&name).ttl("12s").no_renew().acquire().await.unwrap();
    assert!(guard.remaining() < Duration::from_secs(7), "{:?}", guard.remaining());
    // The same for one who had to wait first.
    let (waits, started) = (client.lock(&name).ttl("12s").no_renew(), script.calls(Verb::Attempt));
    let releases = async {
        until_waiting(&client, &name, 1).await;
        script.next(Verb::Attempt, [Fault::Slow(Duration::from_secs(5))]);
        guard.release().await.unwrap();
    };
    let (won, ()) = tokio::join!(waits.acquire(), releases);
    let guard = won.unwrap();
    assert!(script.calls(Verb::Attempt) > started + 1, "it tried more than once");
    assert!(guard.remaining() < Duration::from_secs(7), "{:?}", guard.remaining());
    script.next(Verb::Renew, [Fault::Slow(Duration::from_secs(5))]);
    guard.extend("12s").await.unwrap();
    assert!(guard.remaining() < Duration::from_secs(7), "{:?}", guard.remaining());
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// After a suspend a guard knows at once that its lease has passed, and `lost()` is ready at its next poll.
pub(super) async fn a_suspend_is_noticed_at_once(fixture: Fixture) {
    let (client, names) = (fixture.client().await, [fixture.name("checked"), fixture.name("polled")]);
    // Each is asked in one way only: asking one way must not help the other.
    let (checked, polled) = (take(&client.lock(&names[0])).await, take(&client.lock(&names[1])).await);
    {
        let mut lost = std::pin::pin!(polled.lost());
        assert!(cut_after(1, Polls::Woken, lost.as_mut()).await.is_none());
        fixture.time().suspend(Duration::from_secs(31));
        assert_lost(&checked, &Loss::Expired);
        assert_eq!(cut_after(1, Polls::Woken, lost.as_mut()).await, Some(Loss::Expired));
    }
    assert_eq!(cut_after(1, Polls::Woken, checked.lost()).await, Some(Loss::Expired));
    for guard in [checked, polled] {
        assert_eq!(refusal(guard.release().await).kind(), ErrorKind::Lost);
    }
    settled(&client, &names[0]).await;
    settled(&client, &names[1]).await;
}

/// A suspend shorter than the lease loses nothing.
pub(super) async fn a_short_suspend_loses_nothing(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("nap"));
    let guard = take(&client.lock(&name)).await;
    for _ in 0..10 {
        fixture.time().suspend(Duration::from_secs(15));
        let known = guard.deadline();
        guard.renewed(known).await;
        guard.check().unwrap();
    }
    assert!(!is_free(&other.lock(&name)).await);
    guard.release().await.unwrap();
    settled(&client, &name).await;
}

/// Nothing of the work in a scope runs after a suspend that outlasted the lease, from its next await on.
pub(super) async fn a_scope_ends_at_the_first_await_after_a_suspend(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("scope"));
    let (went_on, lock) = (AtomicBool::new(false), client.lock(&name));
    let (wakes, woken) = tokio::sync::oneshot::channel();
    let work = lock.scope(async |_| {
        woken.await.unwrap();
        went_on.store(true, Ordering::SeqCst);
        Ok::<(), Error>(())
    });
    let suspends = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // What the work waits for comes while the machine sleeps.
        fixture.time().suspend(Duration::from_secs(31));
        wakes.send(()).unwrap();
    };
    let (worked, ()) = tokio::join!(work, suspends);
    assert_eq!(refusal(worked).kind(), ErrorKind::Lost);
    assert!(!went_on.load(Ordering::SeqCst));
    settled(&client, &name).await;
}

/// Work that does not wait between the loss and its end is not stopped by it, and has failed all the same.
pub(super) async fn work_that_ends_after_the_loss_has_failed(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("late"));
    let late = || {
        fixture.time().suspend(Duration::from_secs(31));
        Ok::<(), Error>(())
    };
    let worked = client.lock(&name).scope(async |_| late()).await;
    assert_eq!(refusal(worked).kind(), ErrorKind::Lost);
    let mine = || Error::new(ErrorKind::Internal, Operation::Check, "the work's own");
    let worked = client.lock(&name).wait("60s").scope(async |_| late().and(Err::<(), _>(mine()))).await;
    assert_eq!(refusal(worked).kind(), ErrorKind::Internal, "what the work says counts more");
    if client.info().capabilities.cells {
        let led = client.election(&name).wait("60s").lead("me", async |_| late()).await;
        assert_eq!(refusal(led).kind(), ErrorKind::Lost);
    }
    settled(&client, &name).await;
}

/// Those who wait are served after a suspend, though no timer of theirs went on meanwhile.
pub(super) async fn a_wait_survives_a_suspend(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("sleeper"));
    let guard = take(&client.lock(&name)).await;
    let next = other.lock(&name);
    let suspends = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fixture.time().suspend(Duration::from_secs(3600));
    };
    let (next, ()) = tokio::join!(next.acquire(), suspends);
    let next = next.unwrap();
    assert_lost(&guard, &Loss::Expired);
    assert!(next.fence() > guard.fence());
    drop(guard);
    next.release().await.unwrap();
    client.idle().await;
    settled(&other, &name).await;
}

/// A lock whose renewal never comes back does not hold up the renewal of others.
pub(super) async fn one_hanging_renewal_holds_up_no_other(fixture: Fixture) {
    let script = Script::new();
    let client = fixture.scripted(&script).await;
    let (stuck, sound) = (fixture.name("stuck"), fixture.name("sound"));
    let stuck = take(&client.lock(&stuck).ttl("9s")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sound = take(&client.lock(&sound).ttl("9s")).await;
    script.next(Verb::Renew, [Fault::Never]);
    assert_eq!(stuck.lost().await, Loss::Expired);
    for _ in 0..10 {
        sound.renewed(sound.deadline()).await;
        assert_eq!(sound.state(), State::Held);
    }
    drop(stuck);
    sound.release().await.unwrap();
}

/// A thousand locks lost at once are all told, each at its deadline.
pub(super) async fn a_thousand_losses_at_once_are_all_told(fixture: Fixture) {
    let script = Script::new();
    let client = fixture.scripted(&script).await;
    let mut guards = Vec::new();
    for _ in 0..1000 {
        guards.push(take(&client.lock(&fixture.name("thousand")).ttl("9s")).await);
    }
    assert_eq!(client.stats().held, 1000);
    script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    for guard in &guards {
        assert_eq!(guard.lost().await, Loss::Expired);
    }
    let now = fixture.time().now();
    assert!(guards.iter().all(|guard| now <= guard.deadline().after(GRAIN)));
    drop(guards);
    client.idle().await;
    assert_eq!(client.stats().held, 0);
}
