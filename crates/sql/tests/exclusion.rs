//! Two stores on one file: they exclude each other, and fences grow whatever happens in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{LONG, Place, claim, fresh_id, key, lose, pass, spec, stand_in_line, win};
use leasehold_core::{
    ErrorKind,
    backend::{Backend, Broken, LatchStep, Mode, RecordStore, Release, Renew, Renewal, record::Step},
};
use leasehold_sql::{Sqlite, SqliteConfig};

#[tokio::test]
async fn two_stores_exclude_each_other() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let (mut first, mut second) = (claim(&ours, "x"), claim(&theirs, "x"));
    win(&mut first).await;
    let busy = lose(&mut second).await;
    assert_eq!(busy.holders.len(), 1);
    assert_eq!(busy.holders[0].who.pid, std::process::id());
    assert_eq!(first.release().await.unwrap(), Release::Released);
    win(&mut second).await;
}

#[tokio::test]
async fn one_store_excludes_itself() {
    let place = Place::new();
    let store = place.open().await;
    win(&mut claim(&store, "x")).await;
    lose(&mut claim(&store, "x")).await;
}

#[tokio::test]
async fn names_that_differ_in_case_or_blanks_are_different_names() {
    let place = Place::new();
    let store = place.open().await;
    for name in ["job", "Job", "JOB", "job ", " job", "jöb", "jo\u{308}b", "job%", "job_"] {
        win(&mut claim(&store, name)).await;
    }
    lose(&mut claim(&store, "job ")).await;
}

#[tokio::test]
async fn fences_grow_across_release_reopening_and_expiry() {
    let place = Place::new();
    let store = place.open().await;
    let mut last = 0;
    for _ in 0..3 {
        let fence = pass(&store, "x").await;
        assert!(fence > last);
        last = fence;
    }
    store.close().await.unwrap();
    let store = place.open().await;
    let fence = pass(&store, "x").await;
    assert!(fence > last);
    let expired = win(&mut store.claim(Arc::new(spec("x", Duration::ZERO)))).await;
    assert!(expired.fence > fence);
    assert!(pass(&store, "x").await > expired.fence);
}

#[tokio::test]
async fn fences_grow_when_two_stores_take_turns() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let mut last = 0;
    for turn in 0..40 {
        let fence = pass(if turn % 3 == 0 { &ours } else { &theirs }, "x").await;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
}

#[tokio::test]
async fn a_breaker_in_another_store_ends_the_hold_and_the_holder_is_told() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let held = Arc::new(spec("x", LONG));
    let mut holder = ours.claim(held.clone());
    let grant = win(&mut holder).await;
    let broken = Broken { by: "operator".into(), why: "stuck".into() };
    let _outcome = theirs.break_hold(&key("x"), held.id, &broken).await.unwrap();
    let renew = Renew { key: key("x"), id: held.id, mode: Mode::Exclusive, ttl: LONG };
    let renewals = ours.renew(&[renew]).await;
    assert_eq!(renewals.into_iter().next().unwrap().unwrap(), Renewal::Lost(Some(broken)));
    assert!(pass(&theirs, "x").await > grant.fence);
}

#[tokio::test]
async fn a_batch_of_renewals_has_one_answer_each_in_order() {
    let place = Place::new();
    let store = place.open().await;
    let mut batch = Vec::new();
    for number in 0..150 {
        let spec = Arc::new(spec(&format!("x{number}"), LONG));
        batch.push(Renew { key: spec.key.clone(), id: spec.id, mode: Mode::Exclusive, ttl: LONG });
        if number % 3 > 0 {
            win(&mut store.claim(spec)).await;
        }
    }
    let unreadable = "UPDATE leasehold_record SET record = '{\"format\":99}' WHERE name = 'x1'";
    assert_eq!(place.plain().execute(unreadable, []).unwrap(), 1);
    for (number, renewal) in store.renew(&batch).await.into_iter().enumerate() {
        match number {
            1 => assert_eq!(renewal.unwrap_err().kind(), ErrorKind::Unsupported),
            _ if number % 3 > 0 => assert_eq!(renewal.unwrap(), Renewal::Renewed { granted: LONG }),
            _ => assert_eq!(renewal.unwrap(), Renewal::Lost(None)),
        }
    }
}

#[tokio::test]
async fn a_writer_that_never_ends_makes_the_store_unavailable_and_no_more() {
    let place = Place::new();
    let config = SqliteConfig::new(place.file()).with_busy_timeout(Duration::from_millis(20));
    let store = Sqlite::open(config).await.unwrap();
    let plain = place.plain();
    plain.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = claim(&store, "x").attempt().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("locked for 20ms"), "{error}");
    plain.execute_batch("ROLLBACK").unwrap();
    win(&mut claim(&store, "x")).await;
}

#[tokio::test]
async fn a_waiter_looks_again_without_needing_the_write_lock() {
    let place = Place::new();
    let config = SqliteConfig::new(place.file()).with_busy_timeout(Duration::ZERO);
    let store = Sqlite::open(config).await.unwrap();
    let mut holder = claim(&store, "x");
    win(&mut holder).await;
    let mut waiter = claim(&store, "x");
    stand_in_line(&mut waiter).await;
    let plain = place.plain();
    plain.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = lose(&mut waiter).await;
    assert_eq!(busy.holders.len(), 1);
    lose(&mut claim(&store, "x")).await;
}

#[tokio::test]
async fn latches_count_across_stores() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    assert_eq!(ours.latch(&key("gate"), LatchStep::Arm { count: 2 }).await.unwrap(), 2);
    let repeated = LatchStep::CountDown { id: fresh_id() };
    for _ in 0..2 {
        assert_eq!(theirs.latch(&key("gate"), repeated).await.unwrap(), 1);
    }
    assert_eq!(ours.latch(&key("gate"), LatchStep::CountDown { id: fresh_id() }).await.unwrap(), 0);
    assert_eq!(theirs.latch(&key("gate"), LatchStep::Read).await.unwrap(), 0);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let place = Place::new();
    let store = place.open().await;
    win(&mut claim(&store, "x")).await;
    store.close().await.unwrap();
    assert_eq!(claim(&store, "y").attempt().await.unwrap_err().kind(), ErrorKind::Closed);
    let release = Step::Release { id: fresh_id(), barrier: false };
    assert_eq!(store.store().apply(&key("x"), release).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(store.read_cell("x").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_client_locks_through_the_store() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let (ours, theirs) = (leasehold_core::Client::new(ours), leasehold_core::Client::new(theirs));
    let guard = ours.lock("x").acquire().await.unwrap();
    assert!(theirs.lock("x").try_acquire().await.unwrap().is_none());
    let first = guard.fence();
    let wanted = theirs.lock("x");
    let (released, second) = tokio::join!(guard.release(), wanted.acquire());
    released.unwrap();
    let second = second.unwrap();
    assert!(second.fence() > first);
    second.release().await.unwrap();
}
