//! The primary moves: found again, followed, and what a failover can break is shown rather than hidden.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::time::Duration;

use common::{eventually, spawn};
use leasehold_core::{
    Client, ErrorKind,
    backend::{Backend, Level},
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{
    redis::{Keeps, Replicated, Sentinels, Setup},
    start_or_skip,
};

async fn connect(url: &str) -> Client {
    let config = RedisConfig::from_url(url).unwrap().with_command_timeout(Duration::from_secs(1));
    Client::new(Redis::open(config).await.unwrap())
}

/// Acquires and releases until that works: while a primary is being chosen there is none.
async fn works_again(client: &Client, name: &str) {
    eventually(async || match client.lock(name).wait("1s").acquire().await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(error) => {
            let passing = [ErrorKind::Unavailable, ErrorKind::Indeterminate, ErrorKind::Busy];
            assert!(passing.contains(&error.kind()), "{error:?}");
            false
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_and_a_waiter_live_through_a_failover_by_command() {
    let Some(servers) = start_or_skip(Sentinels::start) else { return };
    let (holder, other) = (connect(&servers.url()).await, connect(&servers.url()).await);
    assert_eq!(holder.info().guarantee.level, Level::S0);
    let guard = holder.lock("a").ttl("20s").acquire().await.unwrap();
    let waiter = spawn(async move { other.lock("a").acquire().await.map(|guard| guard.fence()) });
    eventually(async || matches!(holder.inspect("a").await, Ok(Some(state)) if !state.waiters.is_empty()))
        .await;
    let before = servers.primary().unwrap();
    let after = servers.failover().unwrap();
    assert_ne!(before, after);
    // A failover by command hands everything over, so the lock is still ours; renewing it needs the new primary.
    eventually(async || guard.extend("20s").await.is_ok()).await;
    let fence = guard.fence();
    eventually(async || guard.check().is_ok()).await;
    guard.release().await.unwrap();
    // Woken on the new primary: its lease would have lasted for longer than this test may take.
    assert!(waiter.await.unwrap().unwrap() > fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_primary_dies_the_next_one_is_found() {
    let Some(mut servers) = start_or_skip(Sentinels::start) else { return };
    let client = connect(&servers.url()).await;
    works_again(&client, "a").await;
    let dead = servers.crash_primary().unwrap();
    servers.await_failover(dead).unwrap();
    works_again(&client, "a").await;
    // A dead sentinel matters to nobody.
    servers.sentinels_mut()[0].crash().unwrap();
    works_again(&connect(&servers.url()).await, "a").await;
}

/// Only those who want to hear of moves listen to a sentinel.
fn listeners(servers: &Sentinels) -> usize {
    let lists = servers.sentinels().iter().map(|sentinel| sentinel.ask(&["CLIENT", "LIST"]).unwrap());
    lists.map(|list| list.text().unwrap().matches(" sub=1 ").count()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_closed_leaves_the_sentinels_alone_though_somebody_still_has_it() {
    let Some(servers) = start_or_skip(Sentinels::start) else { return };
    let store = Redis::open(RedisConfig::from_url(&servers.url()).unwrap()).await.unwrap();
    eventually(async || listeners(&servers) == 1).await;
    store.close().await.unwrap();
    eventually(async || listeners(&servers) == 0).await;
    drop(store);
}

#[tokio::test]
async fn a_primary_that_no_sentinel_knows_is_a_clear_error() {
    let Some(servers) = start_or_skip(Sentinels::start) else { return };
    let url = servers.url().replace(Sentinels::SERVICE, "nobody");
    let error = Redis::open(RedisConfig::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    let told = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
    assert!(told.contains("nobody"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fixed_replicas_are_asked_who_leads_them() {
    let Some(mut servers) = start_or_skip(|| Replicated::start(2)) else { return };
    // Both replicas have the lock before it counts: then it lives on with whichever is promoted.
    let client = connect(&format!("{}?wait_replicas=2", servers.url())).await;
    let guard = client.lock("a").ttl("20s").acquire().await.unwrap();
    servers.switch_over(1).unwrap();
    // The old primary refuses writes from now on: that alone tells.
    guard.extend("20s").await.unwrap();
    let other = connect(&servers.url()).await;
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    works_again(&other, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_replicas_do_not_confirm_is_taken_back() {
    let Some(servers) = start_or_skip(|| Replicated::start(2)) else { return };
    let client = connect(&format!("{}?wait_replicas=2&replica_timeout=200ms", servers.url())).await;
    assert_eq!(client.info().guarantee.level, Level::S1);
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    servers.members()[2].pause().unwrap();
    let error = client.lock("a").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("1 of 2 replicas"), "{error}");
    client.idle().await;
    assert_eq!(servers.primary().command(&["EXISTS", "a"]).unwrap(), ":0");
    // Who asks for less gets it, and so does the first when the replica is back.
    let modest = connect(&format!("{}?wait_replicas=1", servers.url())).await;
    modest.lock("a").acquire().await.unwrap().release().await.unwrap();
    servers.members()[2].resume().unwrap();
    works_again(&client, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_replicas_do_not_confirm_does_not_move_the_deadline() {
    let Some(servers) = start_or_skip(|| Replicated::start(1)) else { return };
    let client = connect(&format!("{}?wait_replicas=1&replica_timeout=100ms", servers.url())).await;
    let guard = client.lock("a").ttl("3s").acquire().await.unwrap();
    servers.members()[1].pause().unwrap();
    let deadline = guard.deadline();
    let error = guard.extend("60s").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    // The keeper tries again and again, and none of it counts: in the end the lease is over for its holder.
    guard.lost().await;
    assert!(guard.deadline() <= deadline, "{:?} {deadline:?}", guard.deadline());
    servers.members()[1].resume().unwrap();
}

/// Replication is asynchronous: this is what it costs, and what `wait_replicas` and fences are for.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_can_grant_a_lock_twice_and_the_fence_and_the_loss_tell() {
    let Some(mut servers) =
        start_or_skip(|| Replicated::start_as(1, &Setup::new().with_keeps(Keeps::EveryWrite)))
    else {
        return;
    };
    let first = connect(&servers.url()).await;
    // The replica is promoted by whoever believes that the primary is gone, while its clients still reach it.
    servers.promote(1).unwrap();
    let guard = first.lock("a").ttl("60s").acquire().await.unwrap();
    servers.members_mut()[0].crash().unwrap();
    let second = connect(&servers.url()).await;
    let twice =
        second.lock("a").try_acquire().await.unwrap().expect("the new primary never heard of the first");
    guard.check().expect("the first has not heard either");
    assert!(twice.fence() > guard.fence(), "a resource that checks fences refuses the first from now on");
    eventually(async || guard.extend("60s").await.is_err_and(|error| error.kind() == ErrorKind::Lost)).await;
    twice.check().unwrap();
}
