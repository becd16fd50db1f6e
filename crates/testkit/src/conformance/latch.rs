//! Wait until so many things have happened.

use std::time::Duration;

use leasehold_core::backend::Kind;
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{Stopwatch, joined, settled, state, until_waiting},
};
use crate::scripted::{Fault, Script, Verb};

/// A latch is armed once, counted down by anybody, and gone at zero; then it may be armed again.
pub(super) async fn a_latch_counts_down_to_zero(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("latch"));
    let (mine, theirs) = (one.latch(&name), other.latch(&name));
    assert_eq!(mine.count().await.unwrap(), 0);
    assert_eq!(mine.count_down().await.unwrap(), 0, "a latch that is not armed stays at zero");
    assert!(mine.arm(3).await.unwrap());
    assert!(!theirs.arm(5).await.unwrap(), "it was armed already");
    assert_eq!(state(&other, &name).await.kind, Kind::Latch { count: 3 });
    for left in [2, 1, 0] {
        let latch = if left == 1 { &mine } else { &theirs };
        assert_eq!(latch.count_down().await.unwrap(), left);
        assert_eq!(mine.count().await.unwrap(), left);
    }
    mine.wait().await.unwrap();
    assert!(theirs.arm(1).await.unwrap());
    assert_eq!(theirs.count_down().await.unwrap(), 0);
    settled(&one, &name).await;
    settled(&other, &name).await;
}

/// Everybody who waits is woken by the last count; nobody by an earlier one.
pub(super) async fn the_last_count_wakes_all_who_wait(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("wakes"));
    client.latch(&name).arm(2).await.unwrap();
    let mut waiting = JoinSet::new();
    for number in 0..5 {
        let latch = if number % 2 == 0 { &client } else { &other }.latch(&name);
        waiting.spawn(async move { latch.wait().await.unwrap() });
    }
    until_waiting(&client, &name, 5).await;
    client.latch(&name).count_down().await.unwrap();
    assert!(!client.latch(&name).wait_for("20ms").await.unwrap(), "one count is left");
    assert!(waiting.try_join_next().is_none());
    let watch = Stopwatch::start(&fixture);
    other.latch(&name).count_down().await.unwrap();
    joined(waiting).await;
    watch.was_prompt();
    assert!(client.latch(&name).wait_for("20ms").await.unwrap());
    settled(&client, &name).await;
    settled(&other, &name).await;
}

/// A count whose answer was lost is asked for again and counts once, and once more when the first arrives late.
pub(super) async fn a_repeated_count_counts_once(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("once"));
    let latch = client.latch(&name);
    latch.arm(10).await.unwrap();
    script.next(Verb::Latch, [Fault::Lost]);
    assert_eq!(latch.count_down().await.unwrap(), 9);
    script.next(Verb::Latch, [Fault::Late(Duration::from_millis(60))]);
    assert_eq!(latch.count_down().await.unwrap(), 8);
    script.landed().await;
    assert_eq!(latch.count().await.unwrap(), 8);
    assert_eq!(latch.count_down().await.unwrap(), 7);
    for _ in 0..7 {
        latch.count_down().await.unwrap();
    }
    settled(&client, &name).await;
}

/// A latch has no holder: it stays armed when the client that armed it is gone.
pub(super) async fn a_latch_outlives_who_armed_it(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("outlives"));
    client.latch(&name).arm(1).await.unwrap();
    client.shutdown("10s").await.unwrap();
    assert_eq!(other.latch(&name).count().await.unwrap(), 1);
    assert_eq!(other.latch(&name).count_down().await.unwrap(), 0);
    settled(&other, &name).await;
}
