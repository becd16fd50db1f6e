//! A cluster: names are spread over servers, slots move, and primaries fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

#[path = "../common/mod.rs"]
mod common;
mod waking;

use std::{sync::Arc, time::Duration};

use common::{eventually, spawn, spec};
use futures_util::future::join_all;
use leasehold_core::{
    Client, ErrorKind, Key,
    backend::{Attempt, Backend, Mode, Renew, Renewal, Shape},
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{
    redis::{Cluster, Reply},
    start_or_skip,
};
use waking::is_woken;

/// A name that lives on this node, and its slot.
fn name_on(cluster: &Cluster, owner: usize) -> (String, u16) {
    let names = (0..1000).map(|number| format!("name-{number}"));
    let mut slots = names.map(|name| (cluster.slot_of(&name).unwrap(), name));
    let (slot, name) = slots.find(|(slot, _)| cluster.owner(*slot).unwrap() == owner).unwrap();
    (name, slot)
}

async fn store(cluster: &Cluster) -> Redis {
    Redis::open(RedisConfig::from_url(&cluster.url()).unwrap()).await.unwrap()
}

async fn client(cluster: &Cluster) -> Client {
    Client::new(store(cluster).await)
}

/// How many are subscribed on a node: by slot, or plainly.
fn subscribed(cluster: &Cluster, node: usize, how: &str, channel: &str) -> i64 {
    match cluster.nodes()[node].demand(&["PUBSUB", how, channel]).unwrap().parts() {
        [_, Reply::Integer(count)] => *count,
        other => panic!("{other:?}"),
    }
}

fn calls(cluster: &Cluster, node: usize, field: &str) -> String {
    cluster.nodes()[node].info(field).unwrap().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_spread_over_all_servers_and_listed_from_all() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let client = client(&cluster).await;
    let names: Vec<String> = (0..60).map(|number| format!("job:{number:02}")).collect();
    let guards = join_all(names.iter().map(async |name| client.lock(name).acquire().await)).await;
    // What others keep here may have names that no lock can have.
    for node in 0..3 {
        let (name, _) = name_on(&cluster, node);
        cluster.nodes()[node].demand(&["SET", &format!("{{{name}}}"), "x"]).unwrap();
        assert!(cluster.nodes()[node].info("db0").unwrap().is_some(), "node {node} has some of the names");
    }
    let trap = (0..1000).map(|number| format!("{number}}}")).find_map(|name| {
        cluster.nodes()[0]
            .ask(&["HSET", &name, "a", "1"])
            .ok()
            .filter(|reply| matches!(reply, Reply::Integer(_)))
    });
    assert!(trap.is_some());
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..1000 {
        let page = client.list("job:", cursor.as_deref(), 7).await.unwrap();
        assert!(page.locks.len() <= 7);
        found.extend(page.locks.into_iter().map(|state| state.name));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    found.sort_unstable();
    assert_eq!(found, names);
    assert!(client.list("", None, 1000).await.is_ok());
    assert!(client.list("", Some("7.0.0."), 10).await.is_err(), "there is no such server");
    for guard in guards {
        guard.unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moved_is_followed_and_remembered() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let client = client(&cluster).await;
    let (name, slot) = name_on(&cluster, 0);
    let guard = client.lock(&name).acquire().await.unwrap();
    cluster.migrate_slot(slot, 1).unwrap();
    guard.extend("40s").await.unwrap();
    guard.release().await.unwrap();
    // From now on it is not asked for at the old place.
    eventually(async || {
        let before = calls(&cluster, 0, "errorstat_MOVED");
        client.lock(&name).acquire().await.unwrap().release().await.unwrap();
        calls(&cluster, 0, "errorstat_MOVED") == before
    })
    .await;
    assert!(!calls(&cluster, 0, "errorstat_MOVED").is_empty(), "it was redirected at first");
    assert!(client.inspect(&name).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_whose_keys_are_half_moved_is_kept_and_released() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (client, other) = (client(&cluster).await, client(&cluster).await);
    let (name, slot) = name_on(&cluster, 0);
    let fence = format!("leasehold_fence:{{{name}}}");
    let (behind, ahead) = (format!("{{{name}}}1"), format!("{{{name}}}2"));
    let behind_guard = client.lock(&behind).acquire().await.unwrap();
    let ahead_guard = client.lock(&ahead).acquire().await.unwrap();
    let guard = client.lock(&name).acquire().await.unwrap();
    let migration = cluster.begin_migration(slot, 1).unwrap();
    // Of one only what lies beside it is moved, of one only the lock itself, and one stays.
    cluster.move_these_keys(migration, &[&fence, &ahead]).unwrap();
    for guard in [&guard, &behind_guard, &ahead_guard] {
        guard.extend("50s").await.unwrap();
        guard.check().unwrap();
    }
    assert!(!calls(&cluster, 0, "errorstat_ASK").is_empty(), "one was asked for elsewhere");
    ahead_guard.release().await.unwrap();
    behind_guard.release().await.unwrap();
    // Nobody gets a lock of which only a part can be seen; whoever is patient gets it in the end.
    let waits = spawn(async move { other.lock(&ahead).wait("50s").acquire().await });
    cluster.move_keys(migration).unwrap();
    guard.extend("50s").await.unwrap();
    cluster.finish_migration(migration).unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_whose_lease_is_on_the_other_server_is_not_taken_for_dead() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (one, two) = (client(&cluster).await, client(&cluster).await);
    let (name, slot) = name_on(&cluster, 0);
    let first = one.rwlock(&name).read().acquire().await.unwrap();
    let second = two.rwlock(&name).read().acquire().await.unwrap();
    let migration = cluster.begin_migration(slot, 1).unwrap();
    // The lock is there, and the leases of its readers are here.
    cluster.move_these_keys(migration, &[&name]).unwrap();
    let released = spawn(first.release());
    let (key, id, ttl) = (Key::new("", &name).unwrap(), second.id(), Duration::from_secs(30));
    let renewed = two.backend().renew(&[Renew { key, id, mode: Mode::Shared, ttl }]).await;
    assert_eq!(renewed[0].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    cluster.move_keys(migration).unwrap();
    cluster.finish_migration(migration).unwrap();
    // What could not be done then is done by somebody later; what it did not do is let a writer in.
    drop(released.await.unwrap());
    assert!(one.rwlock(&name).write().try_acquire().await.unwrap().is_none());
    second.check().unwrap();
    second.release().await.unwrap();
    one.rwlock(&name).write().wait("50s").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limiter_whose_takings_are_on_the_other_server_gives_nothing_twice() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let client = client(&cluster).await;
    let (name, slot) = name_on(&cluster, 0);
    let limiter = client.rate_limiter(&name);
    assert!(limiter.try_set_rate(3, "10m").await.unwrap());
    assert!(limiter.try_acquire(3).await.unwrap());
    let migration = cluster.begin_migration(slot, 1).unwrap();
    // The rate is there, and what was taken of it is here.
    cluster.move_these_keys(migration, &[&name]).unwrap();
    assert_eq!(limiter.try_acquire(1).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(limiter.available().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(limiter.set_rate(5, "10m").await.unwrap_err().kind(), ErrorKind::Unavailable);
    cluster.move_keys(migration).unwrap();
    cluster.finish_migration(migration).unwrap();
    assert_eq!(limiter.available().await.unwrap(), 0);
    assert!(!limiter.try_acquire(1).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_of_one_slot_do_not_wait_for_the_one_that_is_moved() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let store = store(&cluster).await;
    let (tag, slot) = name_on(&cluster, 0);
    let mut renews = Vec::new();
    for number in 0..6 {
        let spec = spec(&format!("{{{tag}}}{number}"), Mode::Exclusive, Shape::Plain);
        assert!(matches!(store.claim(spec.clone()).attempt().await.unwrap(), Attempt::Granted(_)));
        let (key, id, mode, ttl) = (spec.key.clone(), spec.id, spec.mode, Duration::from_secs(60));
        renews.push(Renew { key, id, mode, ttl });
    }
    let are_renewed = async |renews: &[Renew]| {
        let renewed = store.renew(renews).await;
        renewed.iter().all(|renewal| matches!(renewal, Ok(Renewal::Renewed { .. })))
    };
    let migration = cluster.begin_migration(slot, 1).unwrap();
    assert!(are_renewed(&renews).await);
    cluster.move_these_keys(migration, &[renews[1].key.full(), renews[4].key.full()]).unwrap();
    assert!(are_renewed(&renews).await);
    assert!(!calls(&cluster, 0, "errorstat_TRYAGAIN").is_empty(), "they were asked for together at first");
    cluster.move_keys(migration).unwrap();
    assert!(are_renewed(&renews).await);
    cluster.finish_migration(migration).unwrap();
    assert!(are_renewed(&renews).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_primary_fails_its_replica_has_the_locks_and_whoever_waits() {
    let Some(mut cluster) = start_or_skip(Cluster::start) else { return };
    let (holder, other) = (client(&cluster).await, client(&cluster).await);
    let (name, slot) = name_on(&cluster, 1);
    let (calm, _) = name_on(&cluster, 0);
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let guard = holder.lock(&name).ttl("50s").acquire().await.unwrap();
    let calm_guard = holder.lock(&calm).ttl("50s").acquire().await.unwrap();
    eventually(async || {
        let members = cluster.nodes().iter();
        let have = members.filter(|node| matches!(node.ask(&["PTTL", &name]), Ok(Reply::Integer(_)))).count();
        have == 1
    })
    .await;
    let lock = other.lock(&name);
    let waits = spawn(async move { lock.acquire().await });
    eventually(async || subscribed(&cluster, 1, "SHARDNUMSUB", &channel) == 1).await;
    cluster.nodes()[1].demand(&["WAIT", "1", "10000"]).unwrap();
    let crashed = cluster.crash_owner(slot).unwrap();
    // Others are not touched meanwhile.
    calm_guard.extend("40s").await.unwrap();
    let owner = cluster.await_takeover(slot, crashed).unwrap();
    // Whoever waits listens at the new place, and is told.
    eventually(async || subscribed(&cluster, owner, "SHARDNUMSUB", &channel) == 1).await;
    guard.check().unwrap();
    eventually(async || guard.extend("40s").await.is_ok()).await;
    guard.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    calm_guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_whose_keys_would_be_apart_are_refused_and_say_why() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let client = client(&cluster).await;
    for name in ["a{b", "{}x", "a}b"] {
        for error in [
            client.lock(name).try_acquire().await.map(drop).unwrap_err(),
            client.lock(name).fair().try_acquire().await.map(drop).unwrap_err(),
            client.rwlock(name).read().try_acquire().await.map(drop).unwrap_err(),
            client.semaphore(name, 2).permits(1).try_acquire().await.map(drop).unwrap_err(),
            client.latch(name).arm(1).await.map(drop).unwrap_err(),
            client.inspect(name).await.map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Config, "{name}: {error}");
            assert!(error.to_string().contains("brace"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_latch_whose_channel_is_in_another_slot_opens_all_the_same() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (client, store) = (client(&cluster).await, store(&cluster).await);
    for name in ["plain", "x{a}", "{a}", "x{a}y"] {
        client.latch(name).arm(1).await.unwrap();
        let mut claim = store.claim(spec(name, Mode::Open, Shape::Plain));
        assert!(matches!(claim.attempt().await.unwrap(), Attempt::Busy(_)));
        claim.changed().await.unwrap();
        client.latch(name).count_down().await.unwrap();
        assert!(is_woken(&mut claim).await, "{name}");
        assert!(matches!(claim.attempt().await.unwrap(), Attempt::Granted(_)), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_cluster_or_not_within_reach_says_so() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let open = async |url: String| Redis::open(RedisConfig::from_url(&url).unwrap()).await.map(drop);
    assert_eq!(open(format!("{}/3", cluster.url())).await.unwrap_err().kind(), ErrorKind::Config);
    let port = cluster.nodes()[4].port();
    // Any one that answers is enough, a replica as well.
    open(format!("redis+cluster://127.0.0.1:1,127.0.0.1:{port}")).await.unwrap();
    assert_eq!(
        open("redis+cluster://127.0.0.1:1".to_owned()).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    let Some(single) = start_or_skip(leasehold_testkit::servers::redis::Redis::start) else { return };
    let error = open(format!("redis+cluster://127.0.0.1:{}", single.port())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("cluster") || format!("{error:?}").contains("cluster"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_of_each_part_confirm_if_asked_for() {
    let Some(mut cluster) = start_or_skip(Cluster::start) else { return };
    let url = format!("{}?wait_replicas=1&replica_timeout=300ms", cluster.url());
    let client = Client::new(Redis::open(RedisConfig::from_url(&url).unwrap()).await.unwrap());
    let (name, _) = name_on(&cluster, 0);
    client.lock(&name).acquire().await.unwrap().release().await.unwrap();
    cluster.nodes_mut()[3].crash().unwrap();
    let error = client.lock(&name).try_acquire().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(client.inspect(&name).await.unwrap().is_none(), "it was taken back");
    let (name, _) = name_on(&cluster, 1);
    client.lock(&name).acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_names_and_moving_slots_lose_nobody() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let cluster = Arc::new(cluster);
    let (one, two) = (client(&cluster).await, client(&cluster).await);
    let (name, slot) = name_on(&cluster, 0);
    let moves = {
        let cluster = cluster.clone();
        tokio::task::spawn_blocking(move || {
            for turn in 1..=6 {
                cluster.migrate_slot(slot, turn % 3).unwrap();
            }
        })
    };
    let counter = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let tasks = (0..8).map(|number| {
        let lock = if number % 2 == 0 { one.lock(&name) } else { two.lock(&name) };
        let counter = counter.clone();
        spawn(async move {
            for _ in 0..25 {
                let guard = lock.acquire().await.unwrap();
                let seen = counter.load(std::sync::atomic::Ordering::SeqCst);
                tokio::task::yield_now().await;
                counter.store(seen + 1, std::sync::atomic::Ordering::SeqCst);
                drop(guard.release().await);
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    moves.await.unwrap();
    assert_eq!(counter.load(std::sync::atomic::Ordering::SeqCst), 200);
}
