//! Every fault is a clear kind, and leaves nothing behind.

use std::time::Duration;

use leasehold_core::{
    Client, ErrorKind,
    backend::{Attempt, Backend as _, Release},
};
use leasehold_sql::{MySql, MySqlConfig};
use leasehold_testkit::servers::{mysql as servers_of, start_or_skip};
use mysql_async::{Conn, TxOpts, prelude::Queryable as _};
use tokio::runtime::Handle;

use super::{Place, open};
use crate::{
    common::{claim, gone, key, win, withdraw},
    servers::eventually,
};

#[tokio::test]
async fn wrong_credentials_and_databases_are_told_apart() {
    let place = Place::new().await;
    let address = place.server.address();
    let kind = async |url: String| open(&url).await.unwrap_err().kind();
    // MySQL answers those it does not know in different ways, so that nobody learns whom it does.
    for number in 0..16 {
        assert_eq!(
            kind(format!("mysql://nobody{number}@{address}/mysql")).await,
            ErrorKind::Denied,
            "{number}"
        );
    }
    let guarded = "CREATE USER guarded IDENTIFIED BY 'right'";
    place.plain().await.query_drop(guarded).await.unwrap();
    assert_eq!(kind(format!("mysql://guarded:wrong@{address}/mysql")).await, ErrorKind::Denied);
    assert_eq!(kind(format!("mysql://guarded@{address}/mysql")).await, ErrorKind::Denied);
    let grant = format!("GRANT ALL ON {}.* TO guarded", place.database);
    place.plain().await.query_drop(grant).await.unwrap();
    open(&format!("mysql://guarded:right@{address}/{}", place.database)).await.unwrap();
    // Now that the server remembers the right one, it answers in another way.
    assert_eq!(kind(format!("mysql://guarded:wrong@{address}/mysql")).await, ErrorKind::Denied);
    assert_eq!(kind(format!("mysql://root@{address}/nowhere")).await, ErrorKind::Config);
    assert_eq!(kind("mysql://root@127.0.0.1:1/mysql".to_owned()).await, ErrorKind::Unavailable);
    let secret = open(&format!("mysql://nobody:sesame@{address}/mysql")).await.unwrap_err().to_string();
    assert!(!secret.contains("sesame"), "{secret}");
}

#[tokio::test]
async fn missing_rights_come_with_the_sql_that_helps() {
    let place = Place::new().await;
    let (mut plain, database) = (place.plain().await, &place.database);
    plain.query_drop(format!("CREATE USER guest_{database}")).await.unwrap();
    plain.query_drop("CREATE TABLE other (a INT)").await.unwrap();
    plain.query_drop(format!("GRANT SELECT ON {database}.* TO guest_{database}")).await.unwrap();
    let url = format!("mysql://guest_{database}@{}/{database}", place.server.address());
    let error = open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("CREATE TABLE IF NOT EXISTS leasehold_record"), "{error}");
    place.open().await;
    let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO guest_{database}");
    plain.query_drop(grant).await.unwrap();
    win(&mut claim(&open(&url).await.unwrap(), "mine")).await;
}

#[tokio::test]
async fn tables_of_an_older_layout_come_with_the_sql_that_helps() {
    let place = Place::new().await;
    place.open().await;
    let mut plain = place.plain().await;
    plain.query_drop("ALTER TABLE leasehold_record DROP COLUMN due").await.unwrap();
    let error = open(&place.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    let words = error.to_string();
    let (at, end) = (words.find("ALTER TABLE").unwrap(), words.rfind(';').unwrap());
    plain.query_drop(&words[at..end]).await.unwrap();
    win(&mut claim(&place.open().await, "name")).await;
}

#[tokio::test]
async fn oversize_names_never_reach_the_server() {
    let place = Place::new().await;
    let client = place.client().await;
    let error = client.lock(&"x".repeat(513)).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Names are bytes: neither case nor a blank at the end makes two of them one.
#[tokio::test]
async fn names_are_not_folded() {
    let place = Place::new().await;
    let store = place.open().await;
    for name in ["name", "Name", "name ", "näme"] {
        let mut claim = claim(&store, name);
        win(&mut claim).await;
    }
}

/// Root may write all the same, so somebody else asks; on a server of its own, since it concerns all of it.
#[tokio::test]
async fn a_read_only_server_is_unavailable() {
    let Some(server) = start_or_skip(|| servers_of::MySql::start(servers_of::Brand::to_test())) else {
        return;
    };
    let mut plain = Conn::from_url(server.url("mysql")).await.unwrap();
    for statement in ["CREATE DATABASE locks", "CREATE USER guest", "GRANT ALL ON locks.* TO guest"] {
        plain.query_drop(statement).await.unwrap();
    }
    let store = open(&format!("mysql://guest@{}/locks", server.address())).await.unwrap();
    plain.query_drop("SET GLOBAL read_only = ON").await.unwrap();
    let mut asked = claim(&store, "name");
    let error = asked.attempt().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("primary"), "{error}");
    assert!(store.inspect(&key("name")).await.unwrap().is_none(), "nothing is left of it");
    let findings = store.diagnose("").await.unwrap();
    assert!(
        findings.iter().any(|finding| finding.topic == "read-only" && finding.remedy.is_some()),
        "{findings:?}"
    );
    plain.query_drop("SET GLOBAL read_only = OFF").await.unwrap();
    win(&mut asked).await;
}

/// The server ends our statement to let another's go on; it is tried again, and nobody hears of it.
#[tokio::test]
async fn a_deadlock_is_borne_by_its_victim() {
    let place = Place::new().await;
    let (store, mut plain) = (place.open().await, place.plain().await);
    let mut first = claim(&store, "name");
    win(&mut first).await;
    assert_eq!(first.release().await.unwrap(), Release::Released);
    plain.query_drop("CREATE TABLE heavy (a INT)").await.unwrap();
    let mut transaction = plain.start_transaction(TxOpts::default()).await.unwrap();
    // The server ends the transaction that has written less.
    transaction.query_drop("INSERT INTO heavy VALUES (1), (2), (3), (4), (5), (6), (7), (8)").await.unwrap();
    transaction.query_drop("SELECT 1 FROM leasehold_record FOR UPDATE").await.unwrap();
    let wins = Handle::current().spawn(async move { win(&mut claim(&store, "name")).await });
    eventually(async || place.waiting_for_locks().await == 1).await;
    // Goes on only if ours gives way.
    transaction.query_drop("UPDATE leasehold_meta SET value = value + 1 WHERE name = 'floor'").await.unwrap();
    transaction.rollback().await.unwrap();
    wins.await.unwrap();
}

/// With the strictest isolation statements of several sessions get in each other's way all the time; nobody hears of it.
#[tokio::test]
async fn serialization_failures_are_borne() {
    let start = || servers_of::MySql::start(servers_of::Brand::to_test());
    let Some(server) = start_or_skip(start) else { return };
    let mut plain = Conn::from_url(server.url("mysql")).await.unwrap();
    plain.query_drop("SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE").await.unwrap();
    let client = async || Client::builder(open(&server.url("mysql")).await.unwrap()).build();
    let clients = [client().await, client().await, client().await];
    let tasks = clients.iter().map(|client| async {
        let mut fences = Vec::new();
        for _ in 0..20 {
            let guard = client.lock("contended").acquire().await.unwrap();
            fences.push(guard.fence());
            guard.release().await.unwrap();
        }
        fences
    });
    let mut fences: Vec<_> = futures_util::future::join_all(tasks).await.concat();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 60, "every grant has a fence of its own");
}

#[tokio::test]
async fn a_server_that_is_gone_comes_back_with_its_locks() {
    let start = || servers_of::MySql::start(servers_of::Brand::to_test());
    let Some(mut server) = start_or_skip(start) else { return };
    let store = open(&server.url("mysql")).await.unwrap();
    let mut held = claim(&store, "kept");
    let fence = win(&mut held).await.fence;
    server.crash().unwrap();
    // What was on its way when it went is not known. From then on it is: nobody is there to ask.
    gone(&store).await;
    server.restart().unwrap();
    let Attempt::Granted(grant) = held.attempt().await.unwrap() else {
        panic!("it was given to somebody else")
    };
    assert_eq!(grant.fence, fence, "the same acquisition finds what it had");
    let client = Client::builder(store).build();
    assert!(client.lock("kept").try_acquire().await.unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_hangs_leaves_it_unknown() {
    let start = || servers_of::MySql::start(servers_of::Brand::to_test());
    let Some(server) = start_or_skip(start) else { return };
    let config = MySqlConfig::from_url(&server.url("mysql")).unwrap();
    let store = MySql::open(config.with_command_timeout(Duration::from_secs(2))).await.unwrap();
    server.pause().unwrap();
    let mut asked = claim(&store, "name");
    let error = asked.attempt().await.unwrap_err();
    server.resume().unwrap();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    let store = open(&server.url("mysql")).await.unwrap();
    // Whether it had arrived or not: the release leaves nothing of it, once it is answered itself.
    withdraw(&mut asked).await;
    win(&mut claim(&store, "name")).await;
}
