//! What is written down of holds that are over, and of nothing else.

use std::time::Duration;

use leasehold_core::{
    Client, Past,
    backend::{BreakOutcome, Memory},
    time::Clock,
};

fn client() -> Client {
    let clock = Clock::test();
    Client::builder(Memory::with_clock(clock.clone())).clock(clock).prefix("shop:").build()
}

/// The history of a name, once there are so many in it. On a test's clock; a hang would be one.
async fn written(client: &Client, name: &str, count: usize) -> Vec<Past> {
    for _ in 0..1000 {
        let past = client.history(name).await.expect("the memory store answers");
        if past.len() >= count {
            return past;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the history of {name} never has {count}");
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_lasted_is_written_down_with_where_and_how_long() {
    let client = client();
    let guard = client.lock("a").label("nightly").acquire().await.unwrap();
    let line = line!() - 1;
    let (id, fence) = (guard.id(), guard.fence());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let state = client.inspect("a").await.unwrap().unwrap();
    let place = format!("{}:{line}", file!());
    assert_eq!(state.holders[0].location.as_ref().unwrap().to_string(), place);
    guard.release().await.unwrap();
    let past = &written(&client, "a", 1).await[0];
    assert_eq!(
        (past.id, past.fence, &*past.how, past.label.as_deref()),
        (id, fence, "released", Some("nightly"))
    );
    assert_eq!((past.held, past.waited, &*past.who), (3000, 0, client.who()));
    assert_eq!(past.location.as_ref().unwrap().to_string(), place);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_comes_and_goes_leaves_nothing() {
    let client = client();
    for _ in 0..50 {
        client.lock("a").acquire().await.unwrap().release().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let last = client.lock("b").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    last.release().await.unwrap();
    written(&client, "b", 1).await;
    assert!(client.history("a").await.unwrap().is_empty(), "and what came before would be there by now");
}

#[tokio::test(start_paused = true)]
async fn a_wait_and_a_bad_end_are_written_down_however_short_the_hold() {
    let client = client();
    let first = client.lock("a").ttl("3s").acquire().await.unwrap();
    let lock = client.lock("a");
    let (second, ()) = tokio::join!(lock.acquire(), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(client.break_hold("a", first.id(), "enough").await.unwrap(), BreakOutcome::Broken);
    });
    second.unwrap().release().await.unwrap();
    drop(first);
    let past = written(&client, "a", 2).await;
    let broken = past.iter().find(|past| &*past.how == "broken").expect("the first was broken");
    assert_eq!(broken.why.as_deref(), Some("enough"));
    let waited = past.iter().find(|past| &*past.how == "released").expect("the second was released");
    assert!(waited.waited >= 1500, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_sixteen_are_remembered_newest_first() {
    let client = client();
    let mut ids = Vec::new();
    for _ in 0..20 {
        let guard = client.lock("a").acquire().await.unwrap();
        ids.push(guard.id());
        tokio::time::sleep(Duration::from_millis(600)).await;
        guard.release().await.unwrap();
    }
    client.shutdown("5s").await.unwrap();
    ids.reverse();
    let past: Vec<_> = client.history("a").await.unwrap().into_iter().map(|past| past.id).collect();
    assert_eq!(past, ids[..16]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_held_by_ticket_is_written_down_by_whoever_releases_it() {
    let clock = Clock::test();
    let store = Memory::with_clock(clock.clone());
    let client = || Client::builder(store.clone()).clock(clock.clone()).build();
    let (first, other) = (client(), client());
    let ticket = first.lock("a").label("nightly").ticket().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    other.release_ticket(&ticket).await.unwrap();
    let past = &written(&other, "a", 1).await[0];
    assert_eq!((past.id, past.fence, &*past.how), (ticket.id(), ticket.fence(), "released"));
    assert_eq!((past.held, past.label.as_deref(), &*past.who), (3000, Some("nightly"), first.who()));
}

#[tokio::test(start_paused = true)]
async fn what_is_broken_is_written_down_once_and_though_its_holder_is_gone() {
    let client = client();
    let ticket = client.lock("a").ticket().await.unwrap();
    let outcome = client.break_hold("a", ticket.id(), "gone since noon").await.unwrap();
    assert_eq!(outcome, BreakOutcome::Broken);
    let past = client.history("a").await.unwrap();
    assert_eq!((past.len(), past[0].id, &*past[0].how), (1, ticket.id(), "broken"));
    assert_eq!(past[0].why.as_deref(), Some("gone since noon"));

    let first = client.lock("b").ttl("3s").acquire().await.unwrap();
    let lock = client.lock("b").ttl("3s");
    let (second, ()) = tokio::join!(lock.acquire(), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        first.release().await.unwrap();
    });
    let second = second.unwrap();
    assert_eq!(client.break_hold("b", second.id(), "enough").await.unwrap(), BreakOutcome::Broken);
    second.lost().await;
    drop(second);
    client.shutdown("5s").await.unwrap();
    let past = client.history("b").await.unwrap();
    let broken: Vec<_> = past.iter().filter(|past| &*past.how == "broken").collect();
    assert_eq!(broken.len(), 1, "{past:?}");
    assert!(broken[0].waited >= 1500, "what its holder wrote stays: {past:?}");
}
