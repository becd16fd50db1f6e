//! Redlock on real servers: a minority may be down, a majority decides, and nobody votes twice.

mod common;

use common::eventually;
use leasehold_core::{
    Client, ErrorKind,
    backend::{Level, Severity},
};
use leasehold_redis::redlock;
use leasehold_testkit::servers::{
    redis::{Independent, Keeps, Setup},
    start_or_skip,
};

fn durable() -> Setup {
    Setup::new().with_keeps(Keeps::EveryWrite)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_five_may_be_down_from_the_beginning_and_come_back() {
    let Some(mut servers) = start_or_skip(|| Independent::start_as(5, &durable())) else { return };
    let url = servers.url();
    for server in &mut servers.members_mut()[..2] {
        server.crash().unwrap();
    }
    let (client, other) =
        (Client::new(redlock(&url).await.unwrap()), Client::new(redlock(&url).await.unwrap()));
    assert_eq!(client.info().guarantee.level, Level::S2);
    let guard = client.lock("a").acquire().await.unwrap();
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    for server in &mut servers.members_mut()[..2] {
        server.restart().unwrap();
    }
    // A renewal brings those back that have lost the lock, or never had it.
    eventually(async || {
        guard.extend("30s").await.unwrap();
        servers.members().iter().all(|server| server.command(&["EXISTS", "a"]).unwrap() == ":1")
    })
    .await;
    let fence = guard.fence();
    guard.release().await.unwrap();
    client.idle().await;
    let next = other.lock("a").acquire().await.unwrap();
    assert!(next.fence() > fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nothing_is_granted_and_nothing_stays() {
    let Some(mut servers) = start_or_skip(|| Independent::start_as(5, &durable())) else { return };
    let client = Client::new(redlock(&servers.url()).await.unwrap());
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    for server in &mut servers.members_mut()[..3] {
        server.crash().unwrap();
    }
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate), "{error:?}");
    client.idle().await;
    for server in &servers.members()[3..] {
        assert_eq!(server.command(&["EXISTS", "a"]).unwrap(), ":0");
    }
}

#[tokio::test]
async fn one_server_under_two_addresses_does_not_vote_twice() {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    let ports: Vec<u16> = servers.members().iter().map(|server| server.port()).collect();
    let url = format!("redlock+redis://127.0.0.1:{},localhost:{},127.0.0.1:{}", ports[0], ports[0], ports[1]);
    let error = redlock(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    let two = format!("redlock+redis://127.0.0.1:{},127.0.0.1:{}", ports[0], ports[1]);
    assert_eq!(redlock(&two).await.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test]
async fn servers_that_do_not_tell_who_they_are_can_be_members() {
    let Some(servers) = start_or_skip(|| Independent::start(3)) else { return };
    for server in servers.members() {
        let user = ["ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-info"];
        server.demand(&user).unwrap();
    }
    let url = |password| servers.url().replace("://", &format!("://app:{password}@"));
    let client = Client::new(redlock(&url("secret")).await.unwrap());
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    assert_eq!(redlock(&url("wrong")).await.unwrap_err().kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn each_member_is_examined_and_one_that_is_away_is_named() {
    let Some(mut servers) = start_or_skip(|| Independent::start(3)) else { return };
    let client = Client::new(redlock(&servers.url()).await.unwrap());
    let found = client.diagnose().await.unwrap();
    // What is the same at all of them is said once; each forgets all its votes when it restarts.
    assert_eq!(found.iter().filter(|finding| finding.topic == "persistence").count(), 1, "{found:?}");
    assert!(found.iter().all(|finding| finding.topic != "member"), "{found:?}");
    let (other, gone) = (servers.members()[1].port(), servers.members()[2].port());
    servers.members()[1].demand(&["CONFIG", "SET", "maxmemory", "1gb"]).unwrap();
    servers.members()[1].demand(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    servers.members_mut()[2].crash().unwrap();
    let found = client.diagnose().await.unwrap();
    let eviction: Vec<_> = found.iter().filter(|finding| finding.topic == "eviction").collect();
    let evicts = |what: &str| what.contains(&format!(":{other}/0: "));
    assert!(
        eviction.iter().any(|found| found.severity == Severity::Danger && evicts(&found.what)),
        "{found:?}"
    );
    let member = found.iter().find(|finding| finding.topic == "member").unwrap();
    assert_eq!(member.severity, Severity::Warning);
    assert!(member.what.contains(&format!(":{gone}/0 ")), "{member:?}");
}
