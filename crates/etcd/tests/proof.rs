//! The lock as a condition of the user's own write: with it, nobody writes who does not hold.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use common::{base64, connect};
use leasehold_core::{
    Client, ErrorKind,
    backend::{BreakOutcome, Memory},
};
use leasehold_etcd::{Condition, Conditional};
use leasehold_testkit::servers::{etcd as servers, start_or_skip};

/// Writes as the user would, on this condition. Says whether that was done.
fn write(server: &servers::Etcd, condition: &Condition, value: &str) -> bool {
    let compare = format!(
        "{{\"key\":\"{}\",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"{}\"}}",
        base64(&condition.key),
        condition.create_revision
    );
    let put = format!(
        "{{\"request_put\":{{\"key\":\"{}\",\"value\":\"{}\"}}}}",
        base64(b"mine"),
        base64(value.as_bytes())
    );
    let txn = format!("{{\"compare\":[{compare}],\"success\":[{put}]}}");
    server.ask("/v3/kv/txn", &txn).unwrap().contains("\"succeeded\":true")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_on_the_condition_fails_once_the_lock_is_lost() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let (client, operator) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = client.lock("a/b").acquire().await.unwrap();
    let condition = guard.compare().unwrap();
    assert_eq!(condition.create_revision.cast_unsigned(), guard.fence());
    assert!(write(&server, &condition, "held"));
    // Still believed to be held: what the holder thinks does not matter.
    let outcome = operator.break_hold("a/b", guard.id(), "test").await.unwrap();
    assert_eq!(outcome, BreakOutcome::Broken);
    assert!(!write(&server, &condition, "stale"));
    let next = operator.lock("a/b").acquire().await.unwrap();
    assert!(!write(&server, &condition, "stale"));
    assert!(write(&server, &next.compare().unwrap(), "next"));
    next.release().await.unwrap();
    drop(guard);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_permits_and_re_entries_have_conditions_too() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let client = connect(&server.url()).await;
    let me = leasehold_core::Owner::new();
    let guards = [
        client.rwlock("r").read().acquire().await.unwrap(),
        client.semaphore("s", 3).permits(2).acquire().await.unwrap(),
        client.lock("e").owner(&me).acquire().await.unwrap(),
        client.lock("e").owner(&me).acquire().await.unwrap(),
    ];
    for guard in guards {
        let condition = guard.compare().unwrap();
        assert!(write(&server, &condition, "held"), "{condition:?}");
        let name = guard.name().to_owned();
        guard.release().await.unwrap();
        // The first of two entries leaves the lock held by the other.
        let held = client.inspect(&name).await.unwrap().is_some();
        assert_eq!(write(&server, &condition, "released"), held, "{name}");
    }
}

#[tokio::test]
async fn a_lock_elsewhere_is_no_condition_here() {
    let client = Client::new(Memory::new());
    let guard = client.lock("a").acquire().await.unwrap();
    assert_eq!(guard.compare().unwrap_err().kind(), ErrorKind::Unsupported);
}
