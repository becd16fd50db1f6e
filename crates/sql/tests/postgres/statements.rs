//! What a lock costs, counted by the server.

use leasehold_core::backend::{Backend as _, Release};

use super::Place;
use crate::{
    common::{claim, win},
    servers::requests_per_release,
};

/// Statements on our tables so far, as the server counted them.
async fn counted(plain: &tokio_postgres::Client) -> u32 {
    let count = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
                 WHERE d.datname = current_database() AND query LIKE '%leasehold_record%'
                 AND query NOT LIKE '%pg_stat_statements%'";
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

/// Within one client the head of the line alone asks; among several, each has a head, and a release wakes two of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_among_five_hundred_waiters_costs_a_few_statements() {
    let place = Place::new().await;
    let plain = place.counting().await;
    let one = [place.client().await];
    let counts = async || counted(&plain).await;
    let each = requests_per_release(&one, "herd", async || listening(&plain).await == 1, counts).await;
    assert!(each <= 12.0, "{each}");
    let several = futures_util::future::join_all((0..10).map(|_| place.client())).await;
    let each = requests_per_release(&several, "herds", async || listening(&plain).await == 11, counts).await;
    assert!(each <= 24.0, "{each}");
}

#[tokio::test]
async fn rows_nobody_uses_are_removed_and_fences_go_on() {
    let place = Place::new().await;
    let (store, plain) = (place.open().await, place.plain().await);
    let mut last = 0;
    for _ in 0..3 {
        let mut claim = claim(&store, "gone");
        last = win(&mut claim).await.fence;
        let _: Release = claim.release().await.unwrap();
    }
    // As if it had been an hour ago.
    plain.batch_execute("UPDATE leasehold_record SET moment_base = moment_base - 3600000000").await.unwrap();
    for number in 0..1024 {
        let mut claim = claim(&store, &format!("other{number}"));
        win(&mut claim).await;
        let _: Release = claim.release().await.unwrap();
    }
    let rows = "SELECT count(*) FROM leasehold_record WHERE name = 'gone'";
    for _ in 0..2000 {
        if plain.query_one(rows, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            let fence = win(&mut claim(&store, "gone")).await.fence;
            assert!(fence > last, "{fence} after {last}");
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the row is still there");
}
