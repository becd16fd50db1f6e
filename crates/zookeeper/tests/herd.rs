//! Five hundred wait for one name, and a release wakes one of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use common::{connect, eventually};
use leasehold_testkit::servers::{
    start_or_skip,
    zookeeper::{Setup, ZooKeeper},
};
use tokio::task::JoinSet;

const WAITERS: u32 = 500;

/// How many watches the server has rung so far because a node was gone, or changed in any other way.
fn rung(server: &ZooKeeper) -> f64 {
    ["zk_sum_node_deleted_watch_count", "zk_sum_node_changed_watch_count", "zk_sum_node_children_watch_count"]
        .iter()
        .map(|name| server.number(name).unwrap())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_among_five_hundred_waiters_rings_one_watch() {
    let Some(server) = start_or_skip(|| ZooKeeper::start_as(&Setup::new())) else { return };
    let url = format!("{}?session_timeout=120s&command_timeout=30s", server.url());
    let holder = connect(&url).await;
    let guard = holder.lock("herd").fair().acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    // Fair ones stand in the store's own line, each of them.
    let clients = [connect(&url).await, connect(&url).await, connect(&url).await, connect(&url).await];
    for number in 0..WAITERS {
        let lock = clients[number as usize % clients.len()].lock("herd").fair().ttl("30s");
        waiting.spawn(async move { lock.acquire().await.unwrap() });
    }
    let watches = || server.number("zk_watch_count").unwrap();
    eventually(async || watches() >= f64::from(WAITERS)).await;
    let before = rung(&server);
    println!("{WAITERS} wait; the server has {} watches and has rung {before}", watches());
    guard.release().await.unwrap();
    let releases = 20;
    for _ in 0..releases {
        waiting.join_next().await.unwrap().unwrap().release().await.unwrap();
    }
    let last = waiting.join_next().await.unwrap().unwrap();
    let after = rung(&server);
    let each = (after - before) / f64::from(releases + 1);
    println!("{} releases rang {} watches: {each:.2} each", releases + 1, after - before);
    assert!(each <= 2.0, "a release woke {each} waiters");
    drop((last, waiting));
}
