//! A Redis that others use as well: what they keep there neither holds up a look nor is taken for a lock.

mod common;

use std::time::Duration;

use common::{Stage, eventually};
use leasehold_core::backend::{BreakOutcome, Broken};

#[tokio::test]
async fn a_hash_that_only_looks_like_a_read_lock_costs_no_more_than_any_other() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let _: i64 = stage.raw(&["HSET", "photo", "mode", "read", "size", "1000000"]).await;
    let _: i64 = stage
        .raw(&["HSET", "album", "mode", "read", "01234567-89ab-cdef-0011-223344556677:1", "90000"])
        .await;
    let _: i64 =
        stage.raw(&["HSET", "vast", "mode", "read", "01234567-89ab-cdef-0011-223344556677:1", "1e308"]).await;
    let before = stage.calls("pttl").await;
    for name in ["photo", "album", "vast"] {
        assert!(client.inspect(name).await.unwrap().is_none(), "{name}");
    }
    let calls = stage.calls("pttl").await - before;
    assert!(calls <= 3 + 256, "{calls}");
}

#[tokio::test]
async fn a_large_value_is_not_fetched_for_a_listing() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let guard = client.lock("held").acquire().await.unwrap();
    let gets_of_a_listing = async || {
        let before = stage.calls("get").await;
        let page = client.list("", None, 100).await.unwrap();
        assert_eq!(page.locks.iter().map(|lock| &*lock.name).collect::<Vec<_>>(), ["held"]);
        stage.calls("get").await - before
    };
    // The first asks who the holder is, too.
    gets_of_a_listing().await;
    let without = gets_of_a_listing().await;
    let _: () = stage.raw(&["SET", "session", &"x".repeat(100_000)]).await;
    assert_eq!(gets_of_a_listing().await, without);
    let _: () = stage.raw(&["SET", "flag", "on"]).await;
    assert!(gets_of_a_listing().await > without, "what may be a holder is fetched");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn the_history_of_a_name_leaves_nothing_that_outlives_it() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let guard = client.lock("once").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    guard.release().await.unwrap();
    eventually(async || !client.history("once").await.unwrap().is_empty()).await;
    for key in stage.keys().await {
        assert!(stage.raw::<i64>(&["PTTL", &key]).await > 0, "{key} stays for ever");
    }
}

#[tokio::test]
async fn a_break_that_is_asked_for_again_is_answered_as_the_first_time() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let guard = client.lock("stuck").acquire().await.unwrap();
    for (why, outcome) in
        [("a", BreakOutcome::Broken), ("a", BreakOutcome::Broken), ("b", BreakOutcome::NotHeld)]
    {
        let broken = Broken { by: "me".into(), why: why.into() };
        let forced = client.break_hold_as("stuck", guard.id(), broken).await.unwrap();
        assert_eq!(forced.outcome, outcome, "{why}");
    }
}
