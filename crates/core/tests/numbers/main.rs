//! What a recorder of metrics hears of locks, and that it hears no names.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deaf;
mod leaders;
mod renewals;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Client, ErrorKind,
    backend::{Backend, BreakOutcome, Memory, Quorum, QuorumOptions},
    time::Clock,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use self::deaf::Deaf;

fn client() -> Client {
    let clock = Clock::test();
    Client::builder(Memory::with_clock(clock.clone())).clock(clock).prefix("shop:").build()
}

/// One whose renewals can be made to fail.
fn deaf_client() -> (Client, Deaf) {
    let clock = Clock::test();
    let deaf = Deaf::new(Memory::with_clock(clock.clone()));
    (Client::builder(deaf.clone()).clock(clock).build(), deaf)
}

/// A store that answers nothing on the spot.
fn asked_for_everything(clock: &Clock) -> Quorum {
    let member = || Arc::new(Memory::with_clock(clock.clone())) as Arc<dyn Backend>;
    let options = QuorumOptions::default().with_clock(clock.clone());
    Quorum::new(vec![member(), member(), member()], options).unwrap()
}

/// Everything that was recorded: for each metric with its labels, the values of a histogram or the sum of a counter.
fn recorded(snapshotter: &Snapshotter) -> BTreeMap<String, Vec<f64>> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.map(|(key, _, _, value)| {
        let labels: Vec<_> =
            key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let values = match value {
            DebugValue::Histogram(values) => values.into_iter().map(f64::from).collect(),
            DebugValue::Counter(sum) => vec![f64::from(u32::try_from(sum).unwrap())],
            DebugValue::Gauge(value) => vec![value.into()],
        };
        (format!("{} {}", key.key().name(), labels.join(" ")), values)
    })
    .collect()
}

/// Runs it on a test's clock, all on this thread, and says what was recorded.
fn record(work: impl Future<Output = ()>) -> BTreeMap<String, Vec<f64>> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || run(work));
    recorded(&snapshotter)
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work);
}

fn seconds(seconds: u64) -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_secs(seconds))
}

/// About as many seconds as are expected: a test's clock goes on a little while locks are given and taken.
fn assert_about(values: &[f64], expected: &[f64]) {
    assert_eq!(values.len(), expected.len(), "{values:?}, not {expected:?}");
    let about = |(value, expected): (&f64, &f64)| (value - expected).abs() < 0.5;
    assert!(values.iter().zip(expected).all(about), "{values:?}, not {expected:?}");
}

#[test]
fn waits_and_holds_are_recorded_by_template_kind_and_outcome() {
    let seen = record(async {
        let client = client();
        let first = client.lock("order:1").acquire().await.unwrap();
        assert!(client.lock("order:1").try_acquire().await.unwrap().is_none());
        let second = client.lock("order:1");
        let waits = client.runtime().spawn(async move { second.acquire().await.unwrap() });
        seconds(3).await;
        first.release().await.unwrap();
        let second = waits.await.unwrap();
        seconds(7).await;
        drop(second);
        client.idle().await;
        let read = client.rwlock("alice").read().template("user {}").acquire().await.unwrap();
        seconds(2).await;
        read.release().await.unwrap();
    });
    assert_about(
        &seen["lock_acquire_seconds template=order:{} kind=exclusive outcome=acquired"],
        &[0.0, 3.0],
    );
    assert_about(&seen["lock_acquire_seconds template=order:{} kind=exclusive outcome=busy"], &[0.0]);
    assert_about(&seen["lock_hold_seconds template=order:{} kind=exclusive end=released"], &[3.0, 7.0]);
    assert_about(&seen["lock_acquire_seconds template=user {} kind=shared outcome=acquired"], &[0.0]);
    assert_about(&seen["lock_hold_seconds template=user {} kind=shared end=released"], &[2.0]);
    assert_eq!(
        seen.keys().filter(|key| key.contains("alice") || key.contains("_lost_")).count(),
        0,
        "{seen:?}"
    );
}

#[test]
fn losses_are_counted_by_cause_and_end_the_hold_once() {
    let seen = record(async {
        let client = client();
        let left = client.lock("a").ttl("10s").no_renew().acquire().await.unwrap();
        let limited = client.lock("b").ttl("10s").max_hold("25s").acquire().await.unwrap();
        let broken = client.lock("c").acquire().await.unwrap();
        let outcome = client.break_hold("c", broken.id(), "stuck").await.unwrap();
        assert_eq!(outcome, BreakOutcome::Broken);
        seconds(60).await;
        assert!(left.check().is_err() && limited.check().is_err() && broken.check().is_err());
        assert!(left.release().await.is_err() && limited.release().await.is_err());
        drop(broken);
        client.idle().await;
    });
    for (name, cause, held) in [("a", "expired", 10.0), ("b", "max_hold", 25.0), ("c", "broken", 10.0)] {
        assert_eq!(seen[&format!("lock_lost_total template={name} kind=exclusive cause={cause}")], [1.0]);
        assert_about(
            &seen[&format!("lock_hold_seconds template={name} kind=exclusive end={cause}")],
            &[held],
        );
    }
    assert_eq!(seen.keys().filter(|key| key.contains("end=released")).count(), 0, "{seen:?}");
    assert_eq!(seen["lock_renewals_total template=c kind=exclusive outcome=lost"], [1.0]);
    assert!(seen["lock_renewals_total template=b kind=exclusive outcome=renewed"][0] >= 4.0, "{seen:?}");
}

/// How the holds of a template ended, and how many of it were counted as lost.
fn ends(seen: &BTreeMap<String, Vec<f64>>, template: &str) -> (Vec<String>, f64) {
    let of = |metric: &str| format!("{metric} template={template} kind=exclusive ");
    let (holds, losses) = (of("lock_hold_seconds"), of("lock_lost_total"));
    let ended = seen.iter().filter_map(|(key, values)| Some((key.strip_prefix(&holds)?, values.len())));
    let lost = seen.iter().filter(|(key, _)| key.starts_with(&losses)).map(|(_, values)| values[0]);
    (ended.flat_map(|(end, count)| vec![end.to_owned(); count]).collect(), lost.sum())
}

#[test]
fn one_who_releases_after_an_end_that_nobody_noticed_ends_the_hold_once() {
    // Belief ends a little before the lease does at the store: there a release finds the lock, and comes too late.
    let (lease, late) = ("100s", Duration::from_millis(99_500));
    let seen = record(async {
        let clock = Clock::test();
        let here = Client::builder(Memory::with_clock(clock.clone())).clock(clock.clone()).build();
        let asked = Client::builder(asked_for_everything(&clock)).clock(clock.clone()).build();
        for (client, released, dropped) in [(&here, "a", "b"), (&asked, "c", "d")] {
            let guards = [released, dropped].map(|name| client.lock(name).ttl(lease).no_renew());
            let [releases, drops] = [guards[0].acquire().await.unwrap(), guards[1].acquire().await.unwrap()];
            clock.suspend(late);
            assert_eq!(releases.release().await.unwrap_err().kind(), ErrorKind::Lost);
            drop(drops);
            client.idle().await;
        }
    });
    for released in ["a", "c"] {
        assert_eq!(ends(&seen, released), (vec!["end=expired".to_owned()], 1.0), "{seen:?}");
    }
    for dropped in ["b", "d"] {
        let (ended, lost) = ends(&seen, dropped);
        let is_lost = f64::from(u8::from(ended != ["end=released"]));
        assert_eq!((ended.len(), lost), (1, is_lost), "{seen:?}");
    }
}

/// Who drops a guard has let go, however long the store takes to hear of it.
#[test]
fn a_guard_dropped_in_time_is_not_lost_when_the_store_answers_late() {
    let seen = record(async {
        let (client, store) = deaf_client();
        let guard = client.lock("a").ttl("10s").no_renew().acquire().await.unwrap();
        seconds(8).await;
        store.is_slow(5);
        drop(guard);
        seconds(10).await;
    });
    assert_eq!(ends(&seen, "a"), (vec!["end=released".to_owned()], 0.0), "{seen:?}");
}

#[test]
fn a_hold_that_was_released_is_not_lost_when_its_lease_would_have_ended() {
    let seen = record(async {
        let client = client();
        let guard = client.lock("a").ttl("10s").acquire().await.unwrap();
        let watch = guard.watch();
        guard.release().await.unwrap();
        seconds(60).await;
        assert!(watch.check().is_err(), "whoever watches it still sees that the lease is over");
    });
    assert_eq!(ends(&seen, "a"), (vec!["end=released".to_owned()], 0.0), "{seen:?}");
}

#[test]
fn an_acquisition_whose_caller_went_away_was_abandoned() {
    let seen = record(async {
        let client = client();
        let held = client.lock("a").acquire().await.unwrap();
        assert!(tokio::time::timeout(Duration::from_secs(5), client.lock("a").acquire()).await.is_err());
        client.idle().await;
        drop(held);
        client.lock("a").ttl("0s").acquire().await.unwrap_err();
    });
    assert_about(&seen["lock_acquire_seconds template=a kind=exclusive outcome=abandoned"], &[5.0]);
    assert_eq!(seen["lock_acquire_seconds template=a kind=exclusive outcome=failed"].len(), 1, "{seen:?}");
}

#[test]
fn ten_thousand_names_make_no_more_labels_than_there_is_room_for() {
    let seen = record(async {
        let client = client();
        for number in 0..10_000_u32 {
            let letters: String =
                number.to_string().chars().map(|digit| char::from(digit as u8 + 49)).collect();
            client.lock(&letters).acquire().await.unwrap().release().await.unwrap();
        }
    });
    assert_eq!(seen.len(), 2 * 201, "an acquisition and a hold for each template, and for the rest");
    let rest = "lock_hold_seconds template=other kind=exclusive end=released";
    assert_eq!(seen[rest].len(), 10_000 - 200);
}

#[test]
fn a_recorder_that_comes_late_hears_what_comes_after_it() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    run(async {
        let client = client();
        client.lock("order:1").acquire().await.unwrap().release().await.unwrap();
        let _installed = metrics::set_default_local_recorder(&recorder);
        client.lock("order:2").acquire().await.unwrap().release().await.unwrap();
    });
    let seen = recorded(&snapshotter);
    assert!(seen.len() == 2 && seen.values().all(|values| values.len() == 1), "{seen:?}");
}

#[test]
fn every_number_that_is_documented_is_told_and_no_other() {
    let seen = record(async {
        let client = client();
        let leadership = client.election("scheduler").ttl("30s").campaign("here").await.unwrap();
        seconds(15).await;
        let broken = client.break_hold("scheduler", leadership.guard().id(), "stuck").await.unwrap();
        assert_eq!(broken, BreakOutcome::Broken);
        leadership.lost().await;
    });
    let told: BTreeSet<&str> = seen.keys().filter_map(|key| key.split(' ').next()).collect();
    let rows = include_str!("../../../leasehold/src/lib.rs").lines();
    let rows = rows.filter_map(|row| row.strip_prefix("//! | `lock_")?.split('`').next());
    let documented: BTreeSet<String> = rows.map(|name| format!("lock_{name}")).collect();
    assert_eq!(told, documented.iter().map(String::as_str).collect());
}
