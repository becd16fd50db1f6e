//! What goes wrong is told as what it is, and nothing stays behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::time::Duration;

use common::{Bare, base64, connect, eventually, spawn, spec};
use leasehold_core::{
    Client, ErrorKind, MAX_NAME, Result,
    backend::{Attempt, Backend, CellWrite, Expect, Loss, Release, Severity},
};
use leasehold_etcd::{Etcd, EtcdConfig};
use leasehold_testkit::servers::{etcd as servers, free_port, start_or_skip};

async fn refused(url: &str) -> ErrorKind {
    Etcd::open(EtcdConfig::from_url(url).unwrap()).await.unwrap_err().kind()
}

/// Turns on passwords: a root, and a user `shop` who may only have names that begin with `shop:`.
fn lock_up(server: &servers::Etcd) {
    let ask = |path: &str, body: &str| server.ask(path, body).unwrap();
    for user in ["root", "shop"] {
        ask("/v3/auth/user/add", &format!("{{\"name\":\"{user}\",\"password\":\"{user}-secret\"}}"));
        ask("/v3/auth/role/add", &format!("{{\"name\":\"{user}\"}}"));
        ask("/v3/auth/user/grant", &format!("{{\"user\":\"{user}\",\"role\":\"{user}\"}}"));
    }
    for (from, to) in
        [("leasehold/name/shop:", "leasehold/name/shop;"), ("leasehold/broken/", "leasehold/broken0")]
    {
        let (from, to) = (base64(from.as_bytes()), base64(to.as_bytes()));
        let right = format!("{{\"permType\":\"READWRITE\",\"key\":\"{from}\",\"range_end\":\"{to}\"}}");
        ask("/v3/auth/role/grant", &format!("{{\"name\":\"shop\",\"perm\":{right}}}"));
    }
    ask("/v3/auth/enable", "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_and_missing_rights_are_denied() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    lock_up(&server);
    let at = server.address();
    assert_eq!(refused(&format!("etcd://shop:wrong-secret@{at}")).await, ErrorKind::Denied);
    assert_eq!(refused(&format!("etcd://nobody:x@{at}")).await, ErrorKind::Denied);
    let client = connect(&format!("etcd://shop:shop-secret@{at}")).await;
    let guard = client.lock("shop:a").acquire().await.unwrap();
    assert!(client.lock("shop:a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    for result in [client.lock("bank:a").try_acquire().await, anonymous(&server).await] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    let findings = client.diagnose().await.unwrap();
    assert!(findings.iter().any(|finding| finding.topic == "rights"), "{findings:?}");
}

async fn anonymous(server: &servers::Etcd) -> Result<Option<leasehold_core::Guard>> {
    connect(&server.url()).await.lock("shop:a").try_acquire().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_unavailable_and_found_again() {
    let nowhere = format!("etcd://127.0.0.1:{}", free_port().unwrap());
    assert_eq!(refused(&nowhere).await, ErrorKind::Unavailable);
    let Some(mut server) = start_or_skip(servers::Etcd::start) else { return };
    let client = connect(&server.url()).await;
    let before = client.lock("a").acquire().await.unwrap().fence();
    client.idle().await;
    server.crash().unwrap();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert!([ErrorKind::Unavailable, ErrorKind::Indeterminate].contains(&error.kind()), "{error:?}");
    server.restart().unwrap();
    let guard = client.lock("a").wait("50s").acquire().await.unwrap();
    assert!(guard.fence() > before);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_not_waited_for_for_ever() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let config = EtcdConfig::from_url(&server.url()).unwrap();
    let client =
        Client::new(Etcd::open(config.with_command_timeout(Duration::from_millis(300))).await.unwrap());
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    server.pause().unwrap();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error:?}");
    server.resume().unwrap();
    // What arrived late is taken back by its claim.
    client.idle().await;
    eventually(async || client.inspect("a").await.is_ok_and(|state| state.is_none())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_beyond_the_limit_are_refused_and_the_longest_is_not() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let client = connect(&server.url()).await;
    let error = client.lock(&"x".repeat(MAX_NAME + 1)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    // Written at three times its length.
    client.lock(&"/".repeat(MAX_NAME)).acquire().await.unwrap().release().await.unwrap();
    client.idle().await;
    assert!(!server.keys("leasehold/").contains("\"kvs\""), "nothing stays behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_revoked_is_a_lock_that_is_lost() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let client = connect(&server.url()).await;
    let guard = client.lock("a").ttl("3s").acquire().await.unwrap();
    server.revoke(&server.lease_of("leasehold/name/a/"));
    assert_eq!(guard.lost().await, Loss::Gone);
    // The lease is not used for another lock.
    client.lock("a").ttl("3s").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_lease_ends_while_it_waits_is_not_granted_a_lock_it_cannot_hold() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let (holder, client) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = holder.lock("a").acquire().await.unwrap();
    let waiter = spawn(async move {
        let guard = client.lock("a").fair().acquire().await.unwrap();
        guard.extend("30s").await.map(|()| guard)
    });
    eventually(async || server.keys("leasehold/name/a/fx/").contains("\"lease\"")).await;
    server.revoke(&server.lease_of("leasehold/name/a/fx/"));
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(server.keys("leasehold/name/a/hx/").contains("\"lease\""), "and it is there");
    guard.release().await.unwrap();
}

/// At the store itself, where nobody looks again by the clock: a wake-up that is lost is lost for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_while_waiting_loses_no_wake_up() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let config = EtcdConfig::from_url(&server.url()).unwrap().with_command_timeout(Duration::from_secs(60));
    let store = Etcd::open(config).await.unwrap();
    for round in 0..10 {
        let (mut holder, mut waiter) = (store.claim(spec("a")), store.claim(spec("a")));
        assert!(matches!(holder.attempt().await.unwrap(), Attempt::Granted(_)));
        assert!(matches!(waiter.attempt().await.unwrap(), Attempt::Busy(_)));
        waiter.changed().await.unwrap();
        assert!(matches!(waiter.attempt().await.unwrap(), Attempt::Busy(_)));
        let released = holder.release().await.unwrap();
        assert_eq!(released, Release::Released);
        // What it would have heard of is forgotten before it begins to listen, at the very revision or at a later one.
        if round % 2 == 0 {
            let written =
                store.write_cell(&format!("later {round}"), Expect::Absent, b"", None).await.unwrap();
            assert!(matches!(written, CellWrite::Written(_)));
        }
        server.compact();
        tokio::time::timeout(Duration::from_secs(60), waiter.changed()).await.unwrap().unwrap();
        assert!(matches!(waiter.attempt().await.unwrap(), Attempt::Granted(_)));
        assert_eq!(waiter.release().await.unwrap(), Release::Released);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_space_refuses_new_locks_and_lets_go_of_old_ones() {
    let quota = ["--quota-backend-bytes=2000000"];
    let Some(server) = start_or_skip(|| servers::Etcd::start_with(&quota)) else { return };
    let store = Etcd::open(EtcdConfig::from_url(&server.url()).unwrap()).await.unwrap();
    let client = Client::new(store.clone());
    let guard = client.lock("held").acquire().await.unwrap();
    let value = vec![b'x'; 100_000];
    let mut refused = None;
    for round in 0..100 {
        let written = store.write_cell(&format!("cell {round}"), Expect::Absent, &value, None).await;
        refused = written.err();
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused.unwrap().kind(), ErrorKind::Unavailable);
    let error = client.lock("new").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let found = client.diagnose().await.unwrap();
    assert!(found.iter().any(|f| f.topic == "alarm" && f.severity == Severity::Danger), "{found:?}");
    guard.check().unwrap();
    guard.release().await.unwrap();
    assert!(!server.keys("leasehold/name/").contains("\"kvs\""), "nothing stays behind");
}

/// What was on its way when the majority went may arrive when it is back; then it is withdrawn.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nobody_gets_a_lock_and_nothing_is_left_behind() {
    let Some(mut servers) = start_or_skip(servers::Cluster::start) else { return };
    let client = connect(&servers.url()).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    for member in [0, 1] {
        servers.members_mut()[member].crash().unwrap();
    }
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate), "{error}");
    servers.restart(&[0, 1]).unwrap();
    eventually(async || matches!(client.lock("a").try_acquire().await, Ok(Some(_)))).await;
    eventually(async || matches!(client.inspect("a").await, Ok(None))).await;
}
