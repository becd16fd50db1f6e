//! Answers that never come: the server did it, or will do it later, and nobody is told.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::{collections::BTreeSet, time::Duration};

use common::{Stage, eventually, spec};
use futures_util::FutureExt;
use leasehold_core::{
    Client, ErrorKind,
    backend::{Attempt, Backend, Mode, Shape},
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::faultline::{Faultline, Speech};

/// A client behind a faultline, and one that goes straight to the server.
async fn set(stage: &Stage) -> (Faultline, Client, Client) {
    let line = Faultline::before(stage.server.address(), Speech::Resp).unwrap();
    let config = RedisConfig::from_url(&format!("redis://{}", line.address())).unwrap();
    let config = config.with_command_timeout(Duration::from_millis(500));
    (line, Client::new(Redis::open(config).await.unwrap()), stage.client().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_whose_answer_was_swallowed_is_taken_back() {
    let Some(stage) = Stage::set().await else { return };
    let (line, client, other) = set(&stage).await;
    // Scripts are loaded, so that the next request is the one that counts.
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    let hit = line.swallow_reply(b"EVALSHA", 1);
    let tried = client.lock("a").try_acquire().await;
    assert_eq!(hit.times(), 1);
    match tried {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error:?}"),
        Ok(guard) => drop(guard.expect("the one who asked again is the one who was granted it")),
    }
    client.idle().await;
    assert!(
        other.lock("a").try_acquire().await.unwrap().is_some(),
        "long before the lease of 30 s has ended"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_arrives_after_its_claim_is_gone_grants_nothing() {
    let Some(stage) = Stage::set().await else { return };
    let (line, client, other) = set(&stage).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    let held = line.hold_request(b"EVALSHA");
    let tried = client.lock("late").try_acquire().await;
    held.caught().await;
    assert_eq!(tried.unwrap_err().kind(), ErrorKind::Indeterminate);
    client.idle().await;
    held.deliver();
    // The late request has come when another on its connection would have been answered: its client is gone, so look.
    eventually(async || stage.calls("evalsha").await + stage.calls("eval").await >= 5).await;
    assert!(other.lock("late").try_acquire().await.unwrap().is_some());
}

/// A name that loses an answer now and then would keep a mark of every one of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_mark_of_an_abandoned_request_goes_when_its_time_is_up() {
    let Some(stage) = Stage::set().await else { return };
    let line = Faultline::before(stage.server.address(), Speech::Resp).unwrap();
    let url = format!("redis://{}?command_timeout=500ms", line.address());
    let store = Redis::open(RedisConfig::from_url(&url).unwrap()).await.unwrap();
    let abandon = async || {
        let asked = spec("a", Mode::Exclusive, Shape::Lock);
        let mut claim = store.claim(asked.clone());
        let hit = line.swallow_reply(b"EVALSHA", 1);
        let lost = claim.attempt().await.unwrap_err();
        assert_eq!((lost.kind(), hit.times()), (ErrorKind::Indeterminate, 1));
        drop(claim.release().await.unwrap());
        asked.id.to_string()
    };
    let marks = async || stage.raw::<Vec<String>>(&["ZRANGE", "leasehold_late:{a}", "0", "-1"]).await;
    let (first, second) = (abandon().await, abandon().await);
    assert_eq!(BTreeSet::from_iter(marks().await), BTreeSet::from([first.clone(), second.clone()]));
    let _: u64 = stage.raw(&["ZADD", "leasehold_late:{a}", "XX", "CH", "1", &first]).await;
    let third = abandon().await;
    assert_eq!(BTreeSet::from_iter(marks().await), BTreeSet::from([second, third]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_answer_was_swallowed_frees_the_lock_all_the_same() {
    let Some(stage) = Stage::set().await else { return };
    let (line, client, other) = set(&stage).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    let guard = client.lock("a").acquire().await.unwrap();
    let hit = line.swallow_reply(b"EVALSHA", 1);
    drop(guard);
    client.idle().await;
    assert_eq!(hit.times(), 1);
    assert!(other.lock("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_whose_answer_was_swallowed_loses_nothing() {
    let Some(stage) = Stage::set().await else { return };
    let (line, client, _other) = set(&stage).await;
    let guard = client.lock("a").ttl("20s").acquire().await.unwrap();
    guard.extend("20s").await.unwrap();
    let hit = line.swallow_reply(b"EVALSHA", 1);
    drop(guard.extend("20s").await);
    assert_eq!(hit.times(), 1);
    guard.check().unwrap();
    guard.extend("20s").await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mute_server_is_an_error_in_time_and_a_cut_connection_is_made_anew() {
    let Some(stage) = Stage::set().await else { return };
    let (line, client, _other) = set(&stage).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    line.stall(true);
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error:?}");
    line.stall(false);
    line.cut();
    client.idle().await;
    eventually(async || client.lock("a").wait("5s").acquire().await.is_ok()).await;
    line.refuse(true);
    line.cut();
    eventually(async || {
        client.lock("b").try_acquire().await.is_err_and(|e| e.kind() == ErrorKind::Unavailable)
    })
    .await;
    line.refuse(false);
    eventually(async || client.lock("b").wait("5s").acquire().await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_and_goes_while_nothing_is_heard_costs_nobody_a_wake_up() {
    let Some(stage) = Stage::set().await else { return };
    let (line, _client, other) = set(&stage).await;
    let store = Redis::open(RedisConfig::from_url(&format!("redis://{}", line.address())).unwrap());
    let store = store.await.unwrap();
    let guard = other.lock("a").acquire().await.unwrap();
    let mut waits = store.claim(spec("a", Mode::Exclusive, Shape::Lock));
    assert!(matches!(waits.attempt().await.unwrap(), Attempt::Busy(_)));
    waits.changed().await.unwrap();
    line.refuse(true);
    line.cut();
    eventually(async || stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.is_empty())
        .await;
    guard.release().await.unwrap();
    // The server may know of the cut before we do.
    let hears_nothing =
        || store.claim(spec("b", Mode::Exclusive, Shape::Lock)).changed().now_or_never().is_none();
    eventually(async || hears_nothing()).await;
    for _ in 0..100 {
        let mut passes = store.claim(spec("b", Mode::Exclusive, Shape::Lock));
        assert!(passes.changed().now_or_never().is_none());
        drop(passes);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    line.refuse(false);
    let woken = tokio::time::timeout(Duration::from_secs(20), waits.changed()).await;
    woken.expect("what was told meanwhile is made up for").unwrap();
}
