//! The statements for resources, on the servers they are for: each lets the same fences pass.

use leasehold_testkit::servers::{mysql, postgres, redis, start_or_skip};
use leasehold_tower::checks;
use mysql_async::prelude::Queryable;

/// Fences in the order in which they come, for two names, and whether they pass. The great ones differ beyond the digits
/// that a floating-point number keeps.
const COMING: &[(&str, i64, bool)] = &[
    ("a", 5, true),
    ("a", 5, true),
    ("a", 4, false),
    ("a", 10, true),
    ("a", 9, false),
    ("a", 10, true),
    ("b", 1, true),
    ("B", 1, true),
    ("a", 9_007_199_254_740_993, true),
    ("a", 9_007_199_254_740_992, false),
    ("a", i64::MAX, true),
    ("a", 11, false),
    ("b", 2, true),
];

#[test]
fn sqlite_lets_no_stale_fence_pass() {
    let mut database = rusqlite::Connection::open_in_memory().unwrap();
    database.execute(checks::sqlite::TABLE, ()).unwrap();
    for &(name, fence, passes) in COMING {
        let transaction =
            database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        let changed = transaction.execute(checks::sqlite::PASS, (name, fence)).unwrap();
        transaction.commit().unwrap();
        assert_eq!(changed, usize::from(passes), "{name} {fence}");
    }
    database.execute(checks::sqlite::PASS, ("c", 0)).unwrap_err();
}

#[tokio::test]
async fn postgres_lets_no_stale_fence_pass() {
    let Some(server) = start_or_skip(postgres::Postgres::start) else { return };
    let (mut database, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let mut driving = tokio::task::JoinSet::new();
    driving.spawn(connection);
    database.batch_execute(checks::postgres::TABLE).await.unwrap();
    for &(name, fence, passes) in COMING {
        let transaction = database.transaction().await.unwrap();
        let changed = transaction.execute(checks::postgres::PASS, &[&name, &fence]).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(changed, u64::from(passes), "{name} {fence}");
    }
    database.execute(checks::postgres::PASS, &[&"c", &0_i64]).await.unwrap_err();
}

#[tokio::test]
async fn mysql_lets_no_stale_fence_pass() {
    let Some(server) = start_or_skip(|| mysql::MySql::start(mysql::Brand::to_test())) else { return };
    let mut database = mysql_async::Conn::from_url(server.url("mysql")).await.unwrap();
    database.query_drop("CREATE DATABASE shop").await.unwrap();
    database.query_drop("USE shop").await.unwrap();
    database.query_drop(checks::mysql::TABLE).await.unwrap();
    for &(name, fence, passes) in COMING {
        let mut transaction = database.start_transaction(mysql_async::TxOpts::new()).await.unwrap();
        transaction.exec_drop(checks::mysql::KNOW, (name, fence)).await.unwrap();
        transaction.exec_drop(checks::mysql::PASS, (fence, name, fence)).await.unwrap();
        let changed = transaction.affected_rows();
        transaction.commit().await.unwrap();
        assert_eq!(changed, u64::from(passes), "{name} {fence}");
    }
    database.exec_drop(checks::mysql::KNOW, ("c", 0)).await.unwrap_err();
    database.disconnect().await.unwrap();
}

#[test]
fn redis_lets_no_stale_fence_write() {
    let Some(server) = start_or_skip(redis::Redis::start) else { return };
    let mut written = Vec::new();
    for &(name, fence, passes) in COMING {
        let (seen, value) = (format!("seen:{{{name}}}"), format!("{{{name}}}"));
        let fence = fence.to_string();
        let set = server.ask(&["EVAL", checks::redis::SET, "2", &seen, &value, &fence, &fence]).unwrap();
        assert_eq!(set, redis::Reply::Integer(passes.into()), "{name} {fence}");
        let appended =
            ["EVAL", checks::redis::CALL, "2", &seen, "log", &fence, "APPEND", &format!("{fence},")];
        match server.ask(&appended).unwrap() {
            redis::Reply::Integer(_) if passes => written.push(format!("{fence},")),
            redis::Reply::Error(error) if !passes => assert!(error.starts_with("STALE"), "{error}"),
            other => panic!("{name} {fence}: {other:?}"),
        }
    }
    let greatest = i64::MAX.to_string();
    assert_eq!(server.ask(&["GET", "{a}"]).unwrap().text(), Some(&*greatest));
    assert_eq!(server.ask(&["GET", "log"]).unwrap().text(), Some(&*written.concat()));
    for wrong in ["0", "-1", "1e9", "007", ""] {
        let answer = server.ask(&["EVAL", checks::redis::SET, "2", "seen:c", "c", wrong, "x"]).unwrap();
        assert!(matches!(answer, redis::Reply::Error(_)), "{wrong:?}: {answer:?}");
    }
}
