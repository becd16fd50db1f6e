//! What a lock costs, counted by the server.

use std::{sync::Arc, time::Duration};

use leasehold_core::backend::{Backend as _, Recorded, Release};
use leasehold_sql::Postgres;
use leasehold_testkit::{herd::Herd, servers::postgres::Pooler};
use tokio_postgres::SimpleQueryMessage;

use super::{Place, connect, open, waiting_for_locks};
use crate::{
    common::{LEFT, claim, leave_rows, lose, spec, win},
    servers::eventually,
};

/// Statements on our tables so far, as the server counted them.
async fn counted(plain: &tokio_postgres::Client) -> u32 {
    let count = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
                 WHERE d.datname = current_database() AND query LIKE '%leasehold_record%'
                 AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%due <%'";
    let calls: i64 = plain.query_one(count, &[]).await.unwrap().get(0);
    calls.try_into().unwrap()
}

/// How many clients have heard their own word, the last thing they say before they listen.
async fn listening(plain: &tokio_postgres::Client) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN leasehold%'";
    plain.query_one(count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn an_uncontended_lock_is_one_statement_each_way() {
    let place = Place::new().await;
    let (store, plain) = (place.open().await, place.counting().await);
    // A name that never was, and one that somebody else used before.
    for round in 0..2 {
        let store = if round == 0 { store.clone() } else { place.open().await };
        let mut claim = claim(&store, "one");
        let before = counted(&plain).await;
        win(&mut claim).await;
        assert_eq!(counted(&plain).await - before, 1, "to acquire, round {round}");
        assert_eq!(claim.release().await.unwrap(), Release::Released);
        assert_eq!(counted(&plain).await - before, 2, "and to release, round {round}");
    }
    store.close().await.unwrap();
}

/// Behind a pooler others of us meet what one has prepared, and strangers leave nothing of it.
#[tokio::test]
async fn a_statement_is_done_whether_its_session_has_it_or_not() {
    let place = Place::new().await;
    let pooler = Pooler::start_sized(&place.server, 1).unwrap();
    let url = pooler.url(&place.database);
    let (one, other, plain) = (open(&url).await.unwrap(), open(&url).await.unwrap(), connect(&url).await);
    let prepared = async || {
        let count = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'leasehold%'";
        match &plain.simple_query(count).await.unwrap()[1] {
            SimpleQueryMessage::Row(row) => row.get(0).unwrap().parse::<u32>().unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let pair = async |store: &Recorded<Postgres>| {
        let mut claim = claim(store, "one");
        win(&mut claim).await;
        assert_eq!(claim.release().await.unwrap(), Release::Released);
    };
    pair(&one).await;
    let made = prepared().await;
    assert!(made >= 2, "to take and to give back: {made}");
    // One that made none meets them.
    pair(&other).await;
    assert_eq!(prepared().await, made);
    // One that made them misses them.
    plain.simple_query("DEALLOCATE ALL").await.unwrap();
    assert_eq!(prepared().await, 0);
    pair(&one).await;
    assert!(prepared().await >= 2);
}

/// Rows are removed while nobody writes, and whoever waited for that reads what it needs afterwards: by a statement that is
/// prepared there and then, and by one that was.
#[tokio::test]
async fn who_waits_for_rows_to_be_removed_has_a_fence_above_them() {
    let place = Place::new().await;
    let (store, mut plain, watch) = (place.open().await, place.plain().await, place.plain().await);
    for round in 0..2 {
        let mut first = claim(&store, "one");
        let last = win(&mut first).await.fence;
        assert_eq!(first.release().await.unwrap(), Release::Released);
        let store = if round == 0 { place.open().await } else { store.clone() };
        let removing = plain.transaction().await.unwrap();
        let remove = "LOCK TABLE leasehold_record IN SHARE ROW EXCLUSIVE MODE;
                      UPDATE leasehold_meta SET value = (SELECT max(greatest(fence, version)) FROM leasehold_record)
                      WHERE name = 'floor';
                      DELETE FROM leasehold_record";
        removing.batch_execute(remove).await.unwrap();
        let mut next = claim(&store, "one");
        let removed = async {
            eventually(async || waiting_for_locks(&watch).await == 1).await;
            removing.commit().await.unwrap();
        };
        let (won, ()) = tokio::join!(win(&mut next), removed);
        assert!(won.fence > last, "{} after {last}, round {round}", won.fence);
        assert_eq!(next.release().await.unwrap(), Release::Released);
    }
}

/// Within one client the head of the line alone asks; among several, each has a head, and a release wakes two of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_among_five_hundred_waiters_costs_a_few_statements() {
    let place = Place::new().await;
    let plain = place.counting().await;
    let one = [place.client().await];
    let counts = async || counted(&plain).await;
    let herd = Herd::default();
    let each = herd.requests_per_release(&one, "herd", async || listening(&plain).await == 1, counts).await;
    assert!(each <= 12.0, "{each}");
    let several = futures_util::future::join_all((0..10).map(|_| place.client())).await;
    let each =
        herd.requests_per_release(&several, "herds", async || listening(&plain).await == 11, counts).await;
    assert!(each <= 24.0, "{each}");
}

/// A line is kept in the row, by each who stands in it: a hand-over is a few statements, and so are their signs of life.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_to_a_long_line_costs_a_few_statements() {
    let place = Place::new().await;
    let plain = place.counting().await;
    let clients = [place.client().await, place.client().await];
    let standing = async || {
        let state = clients[0].inspect("line").await.unwrap();
        listening(&plain).await == 2 && state.is_some_and(|state| state.waiters.len() == LINE.waiters)
    };
    let each = LINE.requests_per_release(&clients, "line", standing, async || counted(&plain).await).await;
    assert!(each <= 24.0, "{each}");
}

/// Fewer than wait outside of a line: every one of them rewrites the row to stand in it.
const LINE: Herd = Herd { waiters: 100, releases: 50, fair: true };

/// What others left behind, whether they gave it back or died, is removed when a store is opened. What is held stays.
#[tokio::test]
async fn rows_nobody_uses_are_removed_and_fences_go_on() {
    let place = Place::new().await;
    let (store, plain) = (place.open().await, place.plain().await);
    let last = leave_rows(&store).await;
    let mut held = claim(&store, "held");
    win(&mut held).await;
    // As if it had been an hour ago, and a lease; it is due at the end of some ten minutes after that.
    let age =
        "UPDATE leasehold_record SET due = due - 3600000000 - 600000000 - 60000000 WHERE name <> 'held'";
    assert_eq!(plain.execute(age, &[]).await.unwrap(), u64::from(LEFT) + 1);
    let (store, rows) = (place.open().await, "SELECT count(*) FROM leasehold_record");
    eventually(async || plain.query_one(rows, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    lose(&mut claim(&store, "held")).await;
    let fence = win(&mut claim(&store, "left0")).await.fence;
    assert!(fence > last, "{fence} after {last}");
}

/// The index by which rows are found that are due must not cost what the room in each page is for.
#[tokio::test]
async fn a_row_is_rewritten_in_its_place() {
    let place = Place::new().await;
    let (store, plain) = (place.open().await, place.plain().await);
    for _ in 0..20 {
        let mut one = store.claim(Arc::new(spec("one", Duration::from_secs(30))));
        win(&mut one).await;
        assert_eq!(one.release().await.unwrap(), Release::Released);
    }
    let count = "SELECT pg_stat_get_tuples_updated(c) - pg_stat_get_tuples_hot_updated(c), pg_stat_get_tuples_updated(c)
                 FROM (SELECT 'leasehold_record'::regclass::oid c) t";
    let counted = async || {
        let row = plain.query_one(count, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    eventually(async || counted().await.1 >= 39).await;
    // Twice it may move: when ten minutes are over in between.
    assert!(counted().await.0 <= 2, "{:?}", counted().await);
}
