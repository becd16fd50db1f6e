//! A lock is broken, and its holder hears of it long before its next renewal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::time::Duration;

use common::{Bare, connect, eventually};
use leasehold_core::{
    Client, Guard, State,
    backend::{BreakOutcome, Loss},
};
use leasehold_testkit::servers::{etcd as servers, start_or_skip};

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

/// Whether exactly one watches anything.
fn one_watches(server: &servers::Etcd) -> bool {
    (server.metric("etcd_debugging_mvcc_watcher_total").unwrap() - 1.0).abs() < 0.5
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_hears_that_its_lock_was_broken_by_whom_and_why() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let (client, other) = (connect(&server.url()).await, connect(&server.url()).await);
    // Broken before it begins to listen, and after.
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
    let kept = client.lock("kept").ttl(LEASE).acquire().await.unwrap();
    eventually(async || one_watches(&server)).await;
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
    let rw = client.rwlock("rw");
    is_told(&other, &rw.read().ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &rw.write().ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &client.semaphore("s", 3).permits(2).ttl(LEASE).acquire().await.unwrap()).await;
    is_told(&other, &client.lock("n").no_renew().ttl(LEASE).acquire().await.unwrap()).await;
    assert_eq!(kept.state(), State::Held);
    eventually(async || one_watches(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_hears_of_it_though_the_server_was_away() {
    let Some(mut server) = start_or_skip(servers::Etcd::start) else { return };
    let (client, other) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = client.lock("a").ttl(LEASE).acquire().await.unwrap();
    eventually(async || one_watches(&server)).await;
    server.crash().unwrap();
    server.restart().unwrap();
    server.compact();
    eventually(async || other.inspect("a").await.is_ok()).await;
    is_told(&other, &guard).await;
    is_told(&other, &client.lock("a").ttl(LEASE).acquire().await.unwrap()).await;
}
