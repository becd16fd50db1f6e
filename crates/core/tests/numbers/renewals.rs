//! How late renewals are heard.

use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{Client, backend::Memory, time::Clock};

use super::{assert_about, deaf_client, record, seconds};

const LAG: &str = "lock_renew_lag_seconds template=a kind=exclusive";

fn renewed(seen: &BTreeMap<String, Vec<f64>>) -> f64 {
    seen.get("lock_renewals_total template=a kind=exclusive outcome=renewed").map_or(0.0, |sum| sum[0])
}

#[test]
fn renewals_that_come_as_they_should_are_not_late() {
    let seen = record(async {
        let (client, _) = deaf_client();
        let guard = client.lock("a").ttl("30s").acquire().await.unwrap();
        seconds(35).await;
        guard.release().await.unwrap();
    });
    assert_about(&seen[LAG], &[0.0, 0.0, 0.0]);
    assert_about(&[renewed(&seen)], &[3.0]);
}

#[test]
fn a_renewal_that_failed_at_first_is_late_since_it_was_due() {
    let seen = record(async {
        let (client, store) = deaf_client();
        let guard = client.lock("a").ttl("30s").acquire().await.unwrap();
        store.is_deaf(true);
        seconds(18).await;
        store.is_deaf(false);
        seconds(4).await;
        guard.check().unwrap();
        guard.release().await.unwrap();
    });
    let lags = &seen[LAG];
    assert_eq!(lags.len(), 1, "those that failed were not heard: {seen:?}");
    // Due after ten, heard by the first try after eighteen; tries are at most a second apart.
    assert!((8.0..9.5).contains(&lags[0]), "{lags:?}");
    assert!(seen["lock_renewals_total template=a kind=exclusive outcome=failed"][0] > 1.0, "{seen:?}");
}

#[test]
fn a_machine_that_slept_renews_late_and_is_on_time_again_after_that() {
    let seen = record(async {
        let clock = Clock::test();
        let client = Client::builder(Memory::with_clock(clock.clone())).clock(clock.clone()).build();
        let guard = client.lock("a").ttl("30s").acquire().await.unwrap();
        seconds(2).await;
        clock.suspend(Duration::from_secs(15));
        seconds(12).await;
        guard.release().await.unwrap();
    });
    // Due after ten, heard when the machine woke after seventeen, and again ten later.
    assert_about(&seen[LAG], &[7.0, 0.0]);
}

#[test]
fn what_a_holder_asks_for_itself_was_not_due() {
    let seen = record(async {
        let (client, _) = deaf_client();
        let guard = client.lock("a").ttl("30s").acquire().await.unwrap();
        guard.extend("30s").await.unwrap();
        let left = client.lock("b").ttl("30s").no_renew().acquire().await.unwrap();
        seconds(9).await;
        guard.release().await.unwrap();
        left.release().await.unwrap();
    });
    assert_about(&[renewed(&seen)], &[1.0]);
    assert_eq!(seen.keys().filter(|key| key.contains("_lag_")).count(), 0, "{seen:?}");
}
