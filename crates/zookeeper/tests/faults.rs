//! Bad servers and bad luck: a clear error, and nothing lost.

mod common;

use std::time::Duration;

use common::{connect, eventually, open};
use leasehold_core::{
    Client, ErrorKind, MAX_NAME, State,
    backend::{Backend as _, Kind, Loss, Severity},
};
use leasehold_testkit::{
    faultline::{Faultline, Speech},
    servers::{
        start_or_skip,
        zookeeper::{Ensemble, Setup, ZooKeeper as Server},
    },
};
use leasehold_zookeeper::{ZooKeeper, ZooKeeperConfig};

#[tokio::test(flavor = "multi_thread")]
async fn those_with_other_credentials_are_denied() {
    let Some(server) = start_or_skip(Server::start) else { return };
    let url = |who: &str| format!("zookeeper://{who}{}/locks", server.address());
    let owner = connect(&url("shop:right@")).await;
    let guard = owner.lock("a").acquire().await.unwrap();
    for who in ["shop:wrong@", "eve:right@", ""] {
        let config = ZooKeeperConfig::from_url(&url(who)).unwrap();
        let error = ZooKeeper::open(config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
    // Another tree of the same ensemble is nobody else's business.
    let other = connect(&format!("zookeeper://eve:right@{}/other", server.address())).await;
    other.lock("a").acquire().await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
    connect(&url("shop:right@")).await.lock("a").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_told_and_comes_back() {
    let Some(mut server) = start_or_skip(Server::start) else { return };
    let url = format!("{}?session_timeout=30s&command_timeout=1s&connect_timeout=2s", server.url());
    let client = connect(&url).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    server.crash().unwrap();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    let passing = [ErrorKind::Unavailable, ErrorKind::Indeterminate];
    assert!(passing.contains(&error.kind()), "{error}");
    let error = ZooKeeper::open(ZooKeeperConfig::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    server.come_back().unwrap();
    let works = async || match client.lock("a").wait("5s").acquire().await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(error) => {
            assert!(
                [ErrorKind::Busy, ErrorKind::Unavailable, ErrorKind::Indeterminate].contains(&error.kind()),
                "{error}"
            );
            false
        }
    };
    eventually(works).await;
    client.idle().await;
    assert!(client.inspect("a").await.unwrap().is_none(), "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_is_cut_off_gives_up_before_its_session_ends() {
    let Some(server) = start_or_skip(Server::start) else { return };
    let line = Faultline::before(server.address(), Speech::Pieces).unwrap();
    let cut = format!("zookeeper://{}?session_timeout=8s&command_timeout=1s", line.address());
    let (client, other) = (connect(&cut).await, connect(&server.url()).await);
    let guard = client.lock("a").ttl("30s").acquire().await.unwrap();
    assert!(guard.remaining() <= Duration::from_secs(4), "no lease is longer than half a session");
    let fence = guard.fence();
    line.stall(true);
    eventually(async || guard.state() == State::Doubt).await;
    assert_eq!(guard.lost().await, Loss::Expired);
    // The server still has the node: the holder knew before anybody else could have the lock.
    let found = other.inspect("a").await.unwrap().expect("the session has not ended yet");
    assert_eq!(found.holders[0].fence, fence);
    let next = other.lock("a").wait("60s").acquire().await.unwrap();
    assert!(next.fence() > fence);
    next.release().await.unwrap();
    line.stall(false);
    // A session that has expired is followed by a new one.
    eventually(async || matches!(client.lock("a").try_acquire().await, Ok(Some(_)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_holder_is_told_and_a_closed_store_refuses() {
    let Some(server) = start_or_skip(Server::start) else { return };
    let (client, other) =
        (open(&format!("{}?session_timeout=20s", server.url())).await, connect(&server.url()).await);
    let backend = client.clone();
    let client = Client::new(client);
    let guard = client.lock("a").ttl("2s").acquire().await.unwrap();
    assert_eq!(
        other.break_hold("a", guard.id(), "test").await.unwrap(),
        leasehold_core::backend::BreakOutcome::Broken
    );
    assert!(matches!(guard.lost().await, Loss::Broken(_)));
    drop(guard);
    client.idle().await;
    backend.close().await.unwrap();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_quorum_grants_nothing_though_it_may_be_read() {
    let readable = Setup::new().with_flag("-Dreadonlymode.enabled=true");
    let Some(mut ensemble) = start_or_skip(|| Ensemble::start_as(3, &readable)) else { return };
    let url = format!("{}?session_timeout=20s&command_timeout=1s&connect_timeout=3s", ensemble.url());
    let client = connect(&url).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    for member in [0, 1] {
        ensemble.members_mut()[member].crash().unwrap();
    }
    let passing = [ErrorKind::Unavailable, ErrorKind::Indeterminate];
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert!(passing.contains(&error.kind()), "{error}");
    let error = ZooKeeper::open(ZooKeeperConfig::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    ensemble.members_mut()[0].come_back().unwrap();
    eventually(async || matches!(client.lock("a").try_acquire().await, Ok(Some(_)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_whose_answer_was_lost_is_found_again() {
    let Some(server) = start_or_skip(Server::start) else { return };
    let line = Faultline::before(server.address(), Speech::Pieces).unwrap();
    let url = format!("zookeeper://{}?session_timeout=30s&command_timeout=5s", line.address());
    let (client, other) = (connect(&url).await, connect(&server.url()).await);
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    let hit = line.swallow_reply(b"__lock__", 1);
    let guard = client.lock("a").acquire().await.unwrap();
    assert_eq!(hit.times(), 1, "one answer was lost");
    let state = other.inspect("a").await.unwrap().unwrap();
    assert_eq!((state.holders.len(), state.waiters.len()), (1, 0), "one node for one acquisition: {state:?}");
    assert_eq!(state.holders[0].fence, guard.fence());
    guard.release().await.unwrap();
    client.idle().await;
    assert!(other.inspect("a").await.unwrap().is_none(), "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_and_oddest_names_are_locked() {
    let Some(server) = start_or_skip(Server::start) else { return };
    let client = connect(&server.url()).await;
    for name in [&"/".repeat(MAX_NAME), "..", "~cells", "zookeeper", "%2F"] {
        let guard = client.lock(name).acquire().await.unwrap();
        assert_eq!(client.inspect(name).await.unwrap().unwrap().kind, Kind::Lock);
        guard.release().await.unwrap();
    }
    let error = client.lock(&"x".repeat(MAX_NAME + 1)).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_program_uses_is_a_conflict() {
    let Some(server) = start_or_skip(Server::start) else { return };
    let client = connect(&server.url()).await;
    let bare = zookeeper_client::Client::connect(&server.address().to_string()).await.unwrap();
    let options = zookeeper_client::CreateMode::Persistent.with_acls(zookeeper_client::Acls::anyone_all());
    bare.mkdir("/leasehold/curator", &options).await.unwrap();
    bare.create("/leasehold/curator/_c_6a2e-lock-0000000001", b"", &options).await.unwrap();
    let error = client.lock("curator").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    // kazoo's node is one of the line.
    bare.mkdir("/leasehold/kazoo", &options).await.unwrap();
    let ephemeral =
        zookeeper_client::CreateMode::EphemeralSequential.with_acls(zookeeper_client::Acls::anyone_all());
    let node = "/leasehold/kazoo/0123456789abcdef0123456789abcdef__lock__";
    let (_, sequence) = bare.create(node, b"worker-7", &ephemeral).await.unwrap();
    assert!(client.lock("kazoo").try_acquire().await.unwrap().is_none());
    let state = client.inspect("kazoo").await.unwrap().unwrap();
    assert_eq!(&*state.holders[0].who.program, "worker-7");
    bare.delete(&format!("{node}{sequence}"), None).await.unwrap();
    client.lock("kazoo").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_one_server_is_worth() {
    let Some(server) = start_or_skip(|| Server::start_as(&Setup::new().with_line("maxSessionTimeout=10000")))
    else {
        return;
    };
    let store = open(&server.url()).await;
    let findings = store.diagnose("").await.unwrap();
    let severity = |topic: &str| findings.iter().find(|finding| finding.topic == topic).unwrap().severity;
    assert_eq!(severity("ensemble-size"), Severity::Warning);
    assert_eq!(severity("session-timeout"), Severity::Note, "40 seconds were asked for, 10 given");
    assert_eq!(severity("server"), Severity::Good);
    assert_eq!(severity("rights"), Severity::Note);
}
