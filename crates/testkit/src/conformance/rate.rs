//! So many in so long.
//!
//! On a real clock nothing here asserts that something is quick: a rate says what is too much, and a slow machine only
//! makes it less.

use std::time::Duration;

use leasehold_core::{Client, ErrorKind, RateLimiter, backend::Share};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, joined, refusal, settled},
};
use crate::scripted::{Fault, Script, Verb};

/// An interval that no test outlives.
const LONG: Duration = Duration::from_secs(3600);

/// An interval short enough to wait for.
const SHORT: Duration = Duration::from_millis(200);

/// A limiter with a rate.
async fn limiter(client: &Client, name: &str, permits: u32, per: Duration) -> RateLimiter {
    let limiter = client.rate_limiter(name);
    limiter.set_rate(permits, per).await.unwrap();
    limiter
}

/// Removes a limiter; nothing is left then.
async fn end(limiter: &RateLimiter, client: &Client, name: &str) {
    assert!(limiter.remove().await.unwrap());
    assert!(!limiter.remove().await.unwrap());
    settled(client, name).await;
}

/// In any portions and from any client, no more than the rate.
pub(super) async fn a_rate_is_all_that_is_given(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("rate"));
    let (mine, theirs) = (limiter(&one, &name, 10, LONG).await, other.rate_limiter(&name));
    assert_eq!(theirs.available().await.unwrap(), 10);
    assert!(mine.try_acquire(3).await.unwrap() && theirs.try_acquire(4).await.unwrap());
    assert!(!mine.try_acquire(4).await.unwrap(), "all or none");
    assert_eq!((mine.available().await.unwrap(), theirs.available().await.unwrap()), (3, 3));
    mine.acquire(2).await.unwrap();
    assert!(theirs.try_acquire(1).await.unwrap() && !mine.try_acquire(1).await.unwrap());
    assert_eq!(mine.available().await.unwrap(), 0);
    end(&mine, &one, &name).await;
}

/// Whoever comes second keeps what the first has set; setting it anew forgets what was taken.
pub(super) async fn a_rate_is_set_once_unless_it_is_set_anew(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("set"));
    let (mine, theirs) = (one.rate_limiter(&name), other.rate_limiter(&name).keep("2h"));
    for limiter in [&mine, &theirs] {
        for error in [refusal(limiter.try_acquire(1).await), refusal(limiter.available().await)] {
            assert_eq!((error.kind(), error.name()), (ErrorKind::Conflict, Some(&*name)), "{error}");
            assert!(error.to_string().contains("set_rate"), "{error}");
        }
        assert_eq!(limiter.rate().await.unwrap(), None);
    }
    assert!(mine.try_set_rate(5, LONG).await.unwrap());
    assert!(!theirs.try_set_rate(9, "1s").await.unwrap());
    assert!(theirs.try_acquire(2).await.unwrap());
    let error = refusal(theirs.acquire(6).await);
    assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("the rate is 5"), "{error}");
    theirs.set_rate(4, LONG).await.unwrap();
    let rate = mine.rate().await.unwrap().unwrap();
    assert_eq!((rate.permits, rate.per, rate.share), (4, LONG, Share::All));
    assert_eq!(rate.keep, Some(2 * LONG));
    assert!(mine.try_acquire(4).await.unwrap() && !mine.try_acquire(1).await.unwrap());
    end(&theirs, &other, &name).await;
}

/// What was taken is back when the interval is over, and those who wait get it; never more than the rate within any
/// interval, on the clock of those who take.
pub(super) async fn who_waits_gets_permits_when_they_are_back(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("waits"));
    let (clock, setter) = (fixture.time(), limiter(&one, &name, 3, SHORT).await);
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        let limiter = if task % 2 == 0 { &one } else { &other }.rate_limiter(&name);
        let clock = clock.clone();
        tasks.spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..3 {
                let asked = clock.now();
                limiter.acquire(1).await.unwrap();
                taken.push((asked, clock.now()));
            }
            taken
        });
    }
    let mut taken: Vec<_> = joined(tasks).await.into_iter().flatten().collect();
    taken.sort_by_key(|(_, answered)| *answered);
    assert_eq!(taken.len(), 12);
    // Each was taken before its answer came. The fourth after any three was asked for before it was taken, and the
    // last of four cannot have been answered earlier than an interval after the first was asked for.
    for four in taken.windows(4) {
        let first = four.iter().map(|(asked, _)| *asked).min().unwrap();
        let passed = first.until(four[3].1);
        assert!(passed + Duration::from_millis(2) >= SHORT, "four within {passed:?}");
    }
    settled(&one, &name).await;
    end(&setter, &other, &name).await;
}

/// Who says how long it waits is told at once when that is in vain, and when asking again can help.
pub(super) async fn what_cannot_come_in_time_is_refused_at_once(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("vain"));
    let limiter = limiter(&client, &name, 2, LONG).await;
    limiter.acquire(2).await.unwrap();
    let patient = limiter.clone().wait("10m");
    let error = refusal(patient.acquire(1).await);
    let after = error.busy().unwrap().retry_after.unwrap();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Busy, Some(&*name)), "{error}");
    assert!(after > LONG / 2 && after <= LONG, "{after:?}");
    assert!(!patient.try_acquire(1).await.unwrap());
    limiter.set_rate(1, SHORT).await.unwrap();
    limiter.acquire(1).await.unwrap();
    assert!(patient.try_acquire(1).await.unwrap(), "this one comes in time");
    assert_eq!(client.stats().waiting, 0);
    end(&limiter, &client, &name).await;
}

/// A rate for each: what one client takes is not missing to another.
pub(super) async fn each_client_has_a_share_of_its_own(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("each"));
    let (mine, theirs) = (one.rate_limiter(&name).per_client(), other.rate_limiter(&name));
    assert!(mine.try_set_rate(2, LONG).await.unwrap());
    assert_eq!(theirs.rate().await.unwrap().unwrap().share, Share::Each);
    assert!(mine.try_acquire(2).await.unwrap() && !mine.try_acquire(1).await.unwrap());
    assert!(theirs.try_acquire(1).await.unwrap());
    assert_eq!((mine.available().await.unwrap(), theirs.available().await.unwrap()), (0, 1));
    end(&mine, &one, &name).await;
}

/// A taking whose answer was lost is asked for again and takes once, also when the first arrives late.
pub(super) async fn a_repeated_taking_takes_once(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("once"));
    let limiter = limiter(&client, &name, 10, LONG).await;
    script.next(Verb::Rate, [Fault::Lost]);
    assert!(limiter.try_acquire(2).await.unwrap());
    assert_eq!(limiter.available().await.unwrap(), 8);
    script.next(Verb::Rate, [Fault::Late(Duration::from_millis(60))]);
    assert!(limiter.try_acquire(3).await.unwrap());
    script.landed().await;
    assert_eq!(limiter.available().await.unwrap(), 5);
    script.next(Verb::Rate, [Fault::Lost, Fault::Lost, Fault::Lost]);
    assert_eq!(refusal(limiter.try_acquire(1).await).kind(), ErrorKind::Indeterminate);
    assert_eq!(limiter.available().await.unwrap(), 4, "asked three times, taken once");
    end(&limiter, &client, &name).await;
}

/// A store that does not serve for a while costs one who waits nothing but time; one who only tries is told.
pub(super) async fn one_who_waits_for_a_rate_bears_with_the_store(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("bears"));
    let limiter = limiter(&client, &name, 5, LONG).await;
    script.next(Verb::Rate, [Fault::Err(ErrorKind::Unavailable)]);
    assert_eq!(refusal(limiter.try_acquire(1).await).kind(), ErrorKind::Unavailable);
    script.next(Verb::Rate, [Fault::Err(ErrorKind::Unavailable); 4]);
    limiter.acquire(1).await.unwrap();
    script.next(Verb::Rate, [Fault::Err(ErrorKind::Denied)]);
    assert_eq!(refusal(limiter.acquire(1).await).kind(), ErrorKind::Denied, "this does not pass");
    assert_eq!(limiter.available().await.unwrap(), 4);
    end(&limiter, &client, &name).await;
}

/// A hundred who wait ask no more often than one of them would, and are served in the order they came.
pub(super) async fn waiters_of_one_client_are_one_to_the_store(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("hundred"));
    let limiter = limiter(&client, &name, 1, LONG).await;
    limiter.acquire(1).await.unwrap();
    let before = script.calls(Verb::Rate);
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let limiter = limiter.clone();
        tasks.spawn(async move { limiter.acquire(1).await });
    }
    eventually(async || client.stats().waiting == 100 && script.calls(Verb::Rate) > before).await;
    assert_eq!(script.calls(Verb::Rate) - before, 1, "only the first asks");
    tasks.shutdown().await;
    eventually(async || client.stats().waiting == 0).await;
    end(&limiter, &client, &name).await;
}

/// A limiter that is kept for so long goes when nobody has used it for that long, and not while it is used.
pub(super) async fn a_limiter_is_kept_as_long_as_it_is_used(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("kept"));
    let keep = Duration::from_secs(2);
    let limiter = client.rate_limiter(&name).keep(keep);
    limiter.set_rate(100, "1s").await.unwrap();
    let (clock, start) = (fixture.time(), fixture.time().now());
    while start.until(clock.now()) < keep + keep / 4 {
        assert!(limiter.try_acquire(1).await.unwrap());
        clock.pause(keep / 10).await;
    }
    assert_eq!(limiter.rate().await.unwrap().unwrap().keep, Some(keep));
    clock.pause(keep).await;
    // Looking is using: look as seldom as it is kept.
    while limiter.rate().await.unwrap().is_some() {
        clock.pause(keep + keep / 4).await;
    }
    settled(&client, &name).await;
}

/// What cannot be meant is refused before anything is sent.
pub(super) async fn rates_without_sense_are_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("sense"));
    let limiter = client.rate_limiter(&name);
    for (permits, per) in [(0, "1s"), (1, "0s"), (1, "10us"), (1, "2 years"), (1, "soon"), (1, "")] {
        for error in
            [refusal(limiter.set_rate(permits, per).await), refusal(limiter.try_set_rate(permits, per).await)]
        {
            assert_eq!(
                (error.kind(), error.name()),
                (ErrorKind::Config, Some(&*name)),
                "{permits} per {per}"
            );
        }
    }
    for keep in ["999ms", "2 years", "long"] {
        let error = refusal(limiter.clone().keep(keep).set_rate(1, "1s").await);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
    for error in [
        refusal(limiter.try_acquire(0).await),
        refusal(limiter.acquire(0).await),
        refusal(limiter.clone().wait("later").acquire(1).await),
        refusal(client.rate_limiter("").acquire(1).await),
        refusal(client.rate_limiter("a\nb").set_rate(1, "1s").await),
    ] {
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
    assert_eq!(script.requests(), 0, "what is refused is not sent");
}

/// A name in use as a limiter is nothing else, and the other way round.
pub(super) async fn limiters_and_locks_conflict(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("kinds"));
    let limiter = limiter(&client, &name, 1, LONG).await;
    let locks = [other.lock(&name), other.rwlock(&name).write(), other.semaphore(&name, 2).permits(1)];
    for lock in &locks {
        let error = refusal(lock.try_acquire().await);
        assert_eq!((error.kind(), error.name()), (ErrorKind::Conflict, Some(&*name)), "{error}");
        assert!(error.to_string().contains("a rate limiter"), "{error}");
    }
    assert_eq!(refusal(other.latch(&name).arm(1).await).kind(), ErrorKind::Conflict);
    end(&limiter, &client, &name).await;
    for (lock, found) in locks.iter().zip(["a lock", "a lock", "a semaphore of 2"]) {
        let guard = lock.try_acquire().await.unwrap().unwrap();
        for error in [
            refusal(limiter.set_rate(1, "1s").await),
            refusal(limiter.try_set_rate(1, "1s").await),
            refusal(limiter.try_acquire(1).await),
            refusal(limiter.available().await),
            refusal(limiter.remove().await),
        ] {
            assert_eq!((error.kind(), error.name()), (ErrorKind::Conflict, Some(&*name)), "{error}");
            assert!(error.to_string().contains(found), "{error}");
        }
        guard.release().await.unwrap();
    }
    assert!(limiter.try_set_rate(1, LONG).await.unwrap(), "the name is free again");
    end(&limiter, &client, &name).await;
}

/// Shutting down tells those who wait.
pub(super) async fn a_closed_client_tells_those_who_wait_for_a_rate(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("closed"));
    let limiter = limiter(&client, &name, 1, LONG).await;
    limiter.acquire(1).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let limiter = limiter.clone();
        tasks.spawn(async move { limiter.acquire(1).await });
    }
    eventually(async || client.stats().waiting == 2).await;
    client.shutdown("10s").await.unwrap();
    for told in joined(tasks).await {
        assert_eq!(refusal(told).kind(), ErrorKind::Closed);
    }
    assert_eq!(refusal(limiter.try_acquire(1).await).kind(), ErrorKind::Closed);
    end(&other.rate_limiter(&name), &other, &name).await;
}
