//! Every fault is a clear kind, and leaves nothing behind.

use std::time::Duration;

use leasehold_core::{
    Client, ErrorKind,
    backend::{Attempt, Backend as _, CellWrite, Expect},
};
use leasehold_sql::{Postgres, PostgresConfig};
use leasehold_testkit::servers::{postgres as servers_of, start_or_skip};

use super::{Place, open, waiting_for_locks};
use crate::{
    common::{claim, gone, key, win, withdraw},
    servers::eventually,
};

#[tokio::test]
async fn wrong_credentials_and_databases_are_told_apart() {
    let place = Place::new().await;
    let address = place.server.address();
    let kind = async |url: String| open(&url).await.unwrap_err().kind();
    assert_eq!(kind(format!("postgres://nobody@{address}/postgres")).await, ErrorKind::Denied);
    let guarded = "CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'right'";
    place.plain().await.batch_execute(guarded).await.unwrap();
    assert_eq!(kind(format!("postgres://guarded:wrong@{address}/postgres")).await, ErrorKind::Denied);
    assert_eq!(kind(format!("postgres://guarded@{address}/postgres")).await, ErrorKind::Denied);
    open(&format!("postgres://guarded:right@{address}/{}", place.database)).await.unwrap();
    assert_eq!(kind(format!("postgres://postgres@{address}/nowhere")).await, ErrorKind::Config);
    assert_eq!(kind("postgres://postgres@127.0.0.1:1/postgres".to_owned()).await, ErrorKind::Unavailable);
    let secret = open(&format!("postgres://nobody:sesame@{address}/postgres")).await.unwrap_err().to_string();
    assert!(!secret.contains("sesame"), "{secret}");
}

#[tokio::test]
async fn missing_rights_come_with_the_sql_that_helps() {
    let place = Place::new().await;
    let plain = place.plain().await;
    let role = format!("guest_{}", place.database);
    plain
        .batch_execute(&format!("CREATE ROLE {role} LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC"))
        .await
        .unwrap();
    plain.batch_execute(&format!("GRANT USAGE ON SCHEMA public TO {role}")).await.unwrap();
    let url = format!("postgres://{role}@{}/{}", place.server.address(), place.database);
    let error = open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("CREATE TABLE IF NOT EXISTS leasehold_record"), "{error}");
    // Whoever may runs it; then it works.
    plain.batch_execute(leasehold_sql::postgres::TABLES).await.unwrap();
    assert_eq!(open(&url).await.unwrap_err().kind(), ErrorKind::Denied);
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold_record, leasehold_meta, leasehold_cell TO";
    plain.batch_execute(&format!("{grant} {role}")).await.unwrap();
    let store = open(&url).await.unwrap();
    win(&mut claim(&store, "mine")).await;
}

#[tokio::test]
async fn a_read_only_server_is_unavailable() {
    let place = Place::new().await;
    place.open().await;
    let alter = format!("ALTER DATABASE {} SET default_transaction_read_only = on", place.database);
    place.plain().await.batch_execute(&alter).await.unwrap();
    let store = place.open().await;
    let error = claim(&store, "name").attempt().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("primary"), "{error}");
    assert!(store.inspect(&key("name")).await.unwrap().is_none(), "nothing is left of it");
    let findings = store.diagnose("").await.unwrap();
    assert!(
        findings.iter().any(|finding| finding.topic == "read-only" && finding.remedy.is_some()),
        "{findings:?}"
    );
}

#[tokio::test]
async fn oversize_names_never_reach_the_server() {
    let place = Place::new().await;
    let client = place.client().await;
    let error = client.lock(&"x".repeat(513)).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn an_isolation_under_which_fences_could_repeat_is_refused() {
    for level in ["repeatable read", "serializable"] {
        let place = Place::new().await;
        let alter =
            format!("ALTER DATABASE {} SET default_transaction_isolation = '{level}'", place.database);
        place.plain().await.batch_execute(&alter).await.unwrap();
        let error = open(&place.url()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{level}");
        assert!(error.to_string().contains("read committed"), "{error}");
        // Whoever may not change the database says it in the URL, as the error has it.
        let words = error.to_string();
        let (_, options) = words.split_once("add ").unwrap();
        let (options, _) = options.split_once(" to the store URL").unwrap();
        win(&mut claim(&open(&format!("{}?{options}", place.url())).await.unwrap(), "name")).await;
    }
}

#[tokio::test]
async fn tables_of_an_older_layout_come_with_the_sql_that_helps() {
    let place = Place::new().await;
    place.open().await;
    let plain = place.plain().await;
    plain.batch_execute("ALTER TABLE leasehold_record DROP COLUMN due").await.unwrap();
    let error = open(&place.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    let words = error.to_string();
    let at = words.find("ALTER TABLE").unwrap();
    let end = words.rfind(';').unwrap();
    plain.batch_execute(&words[at..=end]).await.unwrap();
    win(&mut claim(&place.open().await, "name")).await;
}

/// The server ends our statement to let another's go on; it is tried again, and nobody hears of it.
#[tokio::test]
async fn a_deadlock_is_borne_by_its_victim() {
    let place = Place::new().await;
    let (plain, watcher) = (place.plain().await, place.plain().await);
    // Whoever waits last finds the deadlock and is its victim, if it looks at once.
    let alter = format!("ALTER DATABASE {} SET deadlock_timeout = '10ms'", place.database);
    plain.batch_execute(&format!("{alter}; SET deadlock_timeout = '1h'")).await.unwrap();
    let store = place.open().await;
    let written = store.write_cell("cell", Expect::Absent, b"1", None).await.unwrap();
    let CellWrite::Written(version) = written else { panic!("it was there") };
    // Ours stops here, with the counter in its hands, until we let it go on.
    watcher.batch_execute(BARRIER).await.unwrap();
    plain.batch_execute("BEGIN; SELECT FROM leasehold_cell WHERE name = 'cell' FOR UPDATE").await.unwrap();
    let writes = store.write_cell("cell", Expect::Version(version), b"2", None);
    let other = async {
        eventually(async || waiting_for_locks(&watcher).await == 1).await;
        // Goes on only if ours gives way.
        plain.batch_execute("UPDATE leasehold_meta SET value = value WHERE name = 'cell'").await.unwrap();
        plain.batch_execute("ROLLBACK").await.unwrap();
    };
    let opens = async {
        eventually(async || waiting_for_locks(&watcher).await == 2).await;
        watcher.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    };
    let (written, (), ()) = tokio::join!(writes, other, opens);
    assert!(matches!(written.unwrap(), CellWrite::Written(_)));
    assert_eq!(store.read_cell("cell").await.unwrap().unwrap().value, b"2");
}

/// Whoever changes the counter of cells waits for a lock that this session has.
const BARRIER: &str = "SELECT pg_advisory_lock(1);
    CREATE FUNCTION barrier() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
    CREATE TRIGGER barrier BEFORE UPDATE ON leasehold_meta FOR EACH ROW EXECUTE FUNCTION barrier()";

#[tokio::test]
async fn a_server_that_is_gone_comes_back_with_its_locks() {
    let Some(mut server) = start_or_skip(servers_of::Postgres::start) else { return };
    let url = server.url("postgres");
    let config = PostgresConfig::from_url(&url).unwrap();
    let store = Postgres::open(config).await.unwrap();
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
    let Some(server) = start_or_skip(servers_of::Postgres::start) else { return };
    let url = server.url("postgres");
    let config = PostgresConfig::from_url(&url).unwrap().with_command_timeout(Duration::from_secs(2));
    let store = Postgres::open(config).await.unwrap();
    server.pause().unwrap();
    let mut asked = claim(&store, "name");
    let error = asked.attempt().await.unwrap_err();
    server.resume().unwrap();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    let config = PostgresConfig::from_url(&url).unwrap();
    let store = Postgres::open(config).await.unwrap();
    // Whether it had arrived or not: the release leaves nothing of it, once it is answered itself.
    withdraw(&mut asked).await;
    win(&mut claim(&store, "name")).await;
}
