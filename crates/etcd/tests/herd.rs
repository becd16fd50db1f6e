//! Five hundred who wait for one name, and what a release costs then.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use common::{connect, eventually, spawn};
use leasehold_core::Client;
use leasehold_testkit::servers::{etcd as servers, start_or_skip};

const WAITERS: usize = 500;

/// How many of them get it while it is counted.
const RELEASES: u32 = 50;

/// What the server has told by watches, and what it was asked.
fn counts(server: &servers::Etcd) -> (f64, f64) {
    let asked = server.metric("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Txn\"").unwrap();
    (server.metric("etcd_debugging_mvcc_events_total").unwrap(), asked)
}

async fn waiters(client: &Client) -> usize {
    client.inspect("herd").await.unwrap().map_or(0, |state| state.waiters.len())
}

/// Each stands in the store's own line: waiters of one client outside of the line would be one to the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_tells_a_few_however_many_wait() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let holder = connect(&server.url()).await;
    let client = connect(&server.url()).await;
    let guard = holder.lock("herd").ttl("60s").acquire().await.unwrap();
    let (turn, mut turns) = tokio::sync::mpsc::channel::<leasehold_core::Guard>(1);
    let mut tasks = Vec::new();
    for _ in 0..WAITERS {
        let (lock, turn) = (client.lock("herd").fair().ttl("60s"), turn.clone());
        tasks.push(spawn(async move {
            let guard = lock.acquire().await.unwrap();
            drop(turn.send(guard).await);
        }));
    }
    eventually(async || waiters(&holder).await == WAITERS).await;
    let (told, asked) = counts(&server);
    guard.release().await.unwrap();
    let mut fence = 0;
    for _ in 0..RELEASES {
        let guard = turns.recv().await.unwrap();
        assert!(guard.fence() > fence, "in the order of grants");
        fence = guard.fence();
        guard.release().await.unwrap();
    }
    let (told, asked) = (counts(&server).0 - told, counts(&server).1 - asked);
    let each = told / f64::from(RELEASES);
    println!(
        "{WAITERS} waiters, {RELEASES} releases: {each:.2} notifications and {:.2} transactions each",
        asked / f64::from(RELEASES)
    );
    // The next one in line is told that it is the first now, and then that the lock is free.
    assert!(each < 10.0, "{each} notifications per release");
    for task in &tasks {
        task.abort();
    }
}
