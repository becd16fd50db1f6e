//! A lock is broken, and its holder hears of it: long before its next renewal, and from nobody else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::time::Duration;

use common::{Stage, eventually, spawn};
use leasehold_core::{
    Client, Guard, State,
    backend::{BreakOutcome, Loss},
};
use leasehold_redis::{Redis, RedisConfig, redlock};
use leasehold_testkit::servers::{
    redis::{Cluster, Independent, Sentinels},
    start_or_skip,
};

/// Renewed by itself only after twenty seconds.
const LEASE: &str = "60s";

/// Breaks it from elsewhere. It must be heard of in half the time that a renewal would take to come: that is what these
/// tests are about.
async fn is_told(other: &Client, guard: &Guard) {
    let broken = other.break_hold(guard.name(), guard.id(), "stuck since noon").await.unwrap();
    assert_eq!(broken, BreakOutcome::Broken);
    let told = tokio::time::timeout(Duration::from_secs(10), guard.lost()).await;
    let Ok(Loss::Broken(by)) = told else { panic!("{}: {told:?}", guard.name()) };
    assert_eq!(&*by.why, "stuck since noon");
}

/// How many listen for breaks.
async fn listening(stage: &Stage) -> usize {
    stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "leasehold_breaks:*"]).await.len()
}

async fn connect(url: &str) -> Client {
    Client::new(Redis::open(RedisConfig::from_url(url).unwrap()).await.unwrap())
}

#[tokio::test]
async fn a_holder_hears_that_its_lock_was_broken_by_whom_and_why() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    // Broken before it begins to listen, and after.
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
    eventually(async || listening(&stage).await == 1).await;
    let kept = client.lock("kept").ttl(LEASE).acquire().await.unwrap();
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
    let rw = client.rwlock("rw");
    is_told(&other, &rw.read().ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &rw.write().ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &client.semaphore("s", 3).permits(2).ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &client.semaphore("c", 3).counting().permits(2).ttl(LEASE).acquire().await.unwrap())
        .await;
    is_told(&other, &client.lock("p").plain().ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &client.lock("n").no_renew().ttl(LEASE).acquire().await.unwrap()).await;
    assert_eq!(kept.state(), State::Held);
}

#[tokio::test]
async fn whoever_was_handed_a_lock_hears_that_it_was_broken() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    let lock = client.lock("a").ttl(LEASE).cohort(8);
    let first = lock.acquire().await.unwrap();
    let (id, heir) = (first.id(), lock.clone());
    let heir = spawn(async move { heir.acquire().await.unwrap() });
    eventually(async || client.stats().waiting == 1).await;
    first.release().await.unwrap();
    let heir = heir.await.unwrap();
    assert_eq!(heir.id(), id, "it is the same acquisition");
    eventually(async || listening(&stage).await == 1).await;
    is_told(&other, &heir).await;
}

#[tokio::test]
async fn what_somebody_says_of_a_lock_does_not_end_it() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let guard = client.lock("a").ttl(LEASE).acquire().await.unwrap();
    eventually(async || listening(&stage).await == 1).await;
    let (id, channel) = (guard.id().to_string(), format!("leasehold_breaks:{}", guard.id().client()));
    for word in [&*id, "", "nonsense"] {
        assert_eq!(stage.raw::<u32>(&["PUBLISH", &channel, word]).await, 1);
    }
    // It looks, and goes on.
    let known = guard.deadline();
    assert_eq!(stage.raw::<u32>(&["PUBLISH", &channel, &id]).await, 1);
    assert!(guard.renewed(known).await > known);
    assert_eq!(guard.state(), State::Held);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_client_listens_once_and_not_for_locks_that_come_and_go() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    for _ in 0..100 {
        client.lock("a").acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(stage.calls("subscribe").await, 0);
    for name in ["a", "b", "c"] {
        let guard = client.lock(name).ttl(LEASE).acquire().await.unwrap();
        eventually(async || listening(&stage).await == 1).await;
        guard.release().await.unwrap();
    }
    assert_eq!(stage.calls("subscribe").await, 1);
}

#[tokio::test]
async fn a_holder_hears_again_after_its_line_was_cut() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    let guard = client.lock("a").ttl(LEASE).acquire().await.unwrap();
    eventually(async || listening(&stage).await == 1).await;
    for _ in 0..3 {
        stage.raw::<u32>(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    }
    // Whether it listens by now or not.
    is_told(&other, &guard).await;
    eventually(async || listening(&stage).await == 1).await;
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
}

#[tokio::test]
async fn one_who_may_not_listen_for_breaks_is_woken_for_locks_all_the_same() {
    let Some(stage) = Stage::set().await else { return };
    let rules = ["ACL", "SETUSER", "old", "on", ">pw", "~*", "&redisson_*", "+@all"];
    stage.raw::<()>(&rules).await;
    let config = stage.config().with_username("old").with_password("pw");
    let client = Client::new(Redis::open(config.clone()).await.unwrap());
    let other = Client::new(Redis::open(config).await.unwrap());
    let guard = client.lock("a").ttl(LEASE).acquire().await.unwrap();
    // It has tried to listen, and was refused.
    eventually(async || {
        let denied: redis::Value = stage.raw(&["ACL", "LOG"]).await;
        format!("{denied:?}").contains("leasehold_breaks:")
    })
    .await;
    let held = other.lock("b").ttl(LEASE).acquire().await.unwrap();
    let lock = client.lock("b");
    let waiting = spawn(async move { lock.acquire().await.unwrap() });
    eventually(async || {
        let channels: Vec<String> = stage.raw(&["PUBSUB", "CHANNELS", "redisson_*"]).await;
        !channels.is_empty()
    })
    .await;
    held.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
    assert_eq!(other.break_hold("a", guard.id(), "why").await.unwrap(), BreakOutcome::Broken);
    assert!(guard.release().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_it_is_heard_from_every_server() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (client, other) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let mut guards = Vec::new();
    for name in 0..8 {
        guards.push(client.lock(&format!("name-{name}")).ttl(LEASE).acquire().await.unwrap());
    }
    let owners: std::collections::BTreeSet<usize> =
        guards.iter().map(|guard| cluster.owner(cluster.slot_of(guard.name()).unwrap()).unwrap()).collect();
    assert_eq!(owners.len(), 3, "on all servers");
    for guard in &guards {
        is_told(&other, guard).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_heard_from_the_primary_that_took_over() {
    let Some(servers) = start_or_skip(Sentinels::start) else { return };
    let (client, other) = (connect(&servers.url()).await, connect(&servers.url()).await);
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
    servers.failover().unwrap();
    let lock = client.lock("a").ttl(LEASE);
    eventually(async || lock.try_acquire().await.is_ok_and(|guard| guard.is_some())).await;
    client.idle().await;
    is_told(&other, &lock.acquire().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_majority_of_servers_it_is_heard_too() {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    let client = Client::new(redlock(&servers.url()).await.unwrap());
    let other = Client::new(redlock(&servers.url()).await.unwrap());
    for _ in 0..3 {
        is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
    }
}
