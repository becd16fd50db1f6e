//! A write commits with the proof of holding, or not at all.

use leasehold_core::ErrorKind;
use leasehold_sql::mysql::InTransaction as _;
use mysql_async::{TxOpts, prelude::Queryable as _};
use tokio::runtime::Handle;

use super::Place;
use crate::servers::eventually;

/// The transaction's own snapshot was made before the lock was lost: a plain read would still show it held.
#[tokio::test]
async fn a_lost_lock_is_told_whatever_the_snapshot_shows() {
    let place = Place::new().await;
    let (client, mut plain, mut other) = (place.client().await, place.plain().await, place.plain().await);
    let guard = client.lock("stock").acquire().await.unwrap();
    let mut transaction = plain.start_transaction(TxOpts::default()).await.unwrap();
    let held: Option<u64> = transaction.query_first("SELECT COUNT(*) FROM leasehold_record").await.unwrap();
    assert_eq!(held, Some(1));
    other.query_drop("UPDATE leasehold_record SET record = NULL, version = version + 1").await.unwrap();
    assert_eq!(guard.in_transaction(&mut transaction).await.unwrap_err().kind(), ErrorKind::Lost);
    transaction.rollback().await.unwrap();
}

/// Between the proof and the commit nobody is granted the lock, though it is given back meanwhile.
#[tokio::test]
async fn nobody_is_granted_the_lock_before_the_commit() {
    let place = Place::new().await;
    let (client, other, mut plain) = (place.client().await, place.client().await, place.plain().await);
    let guard = client.lock("stock").acquire().await.unwrap();
    let mut transaction = plain.start_transaction(TxOpts::default()).await.unwrap();
    guard.in_transaction(&mut transaction).await.unwrap();
    let passes_on = Handle::current().spawn(async move {
        guard.release().await.unwrap();
        other.lock("stock").acquire().await.unwrap()
    });
    eventually(async || place.waiting_for_locks().await == 1).await;
    assert!(!passes_on.is_finished(), "it was passed on before the commit");
    transaction.commit().await.unwrap();
    passes_on.await.unwrap().release().await.unwrap();
}

/// The optimistic lock: whoever comes second is told so; to write what was there already is a write all the same.
#[tokio::test]
async fn a_row_that_changed_is_not_overwritten() {
    use leasehold_sql::{Updated, Versioned};
    let place = Place::new().await;
    let mut plain = place.plain().await;
    plain.query_drop("CREATE TABLE stock (id INT, amount INT, version BIGINT)").await.unwrap();
    plain.query_drop("INSERT INTO stock VALUES (7, 1, 1)").await.unwrap();
    let stock = Versioned::new("stock", "id", "version");
    let same = stock.update_mysql(&mut plain, (7, 1), "amount = ?", vec![1.into()]).await.unwrap();
    assert_eq!(same, Updated::Written(2));
    let late = stock.update_mysql(&mut plain, (7, 1), "amount = ?", vec![9.into()]).await.unwrap();
    assert_eq!(late, Updated::Stale);
    let row: Option<(i32, i64)> = plain.query_first("SELECT amount, version FROM stock").await.unwrap();
    assert_eq!(row, Some((1, 2)));
}

/// Which of them was meant nobody knows.
#[tokio::test]
async fn rows_that_share_their_key_are_not_updated() {
    use leasehold_sql::Versioned;
    let place = Place::new().await;
    let mut plain = place.plain().await;
    plain.query_drop("CREATE TABLE stock (id INT, amount INT, version BIGINT)").await.unwrap();
    plain.query_drop("INSERT INTO stock VALUES (7, 1, 1), (7, 2, 1), (8, 3, 1)").await.unwrap();
    let stock = Versioned::new("stock", "id", "version");
    let error = stock.update_mysql(&mut plain, (7, 1), "amount = ?", vec![9.into()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("several rows of stock"), "{error}");
    let changed: Option<u64> =
        plain.query_first("SELECT COUNT(*) FROM stock WHERE amount = 9 OR version <> 1").await.unwrap();
    assert_eq!(changed, Some(0));
}

/// Those who update one row at once are told which of them came first, and nobody hears of locks.
#[tokio::test]
async fn of_many_updates_at_once_one_is_written() {
    use leasehold_sql::{Updated, Versioned};
    let place = Place::new().await;
    let mut plain = place.plain().await;
    plain.query_drop("CREATE TABLE stock (id INT PRIMARY KEY, amount INT, version BIGINT)").await.unwrap();
    plain.query_drop("INSERT INTO stock VALUES (7, 0, 1)").await.unwrap();
    for round in 1..=10 {
        let update = async |amount: i32| {
            let (stock, mut plain) = (Versioned::new("stock", "id", "version"), place.plain().await);
            stock.update_mysql(&mut plain, (7, round), "amount = ?", vec![amount.into()]).await.unwrap()
        };
        let done = futures_util::future::join_all((0..8).map(&update)).await;
        assert_eq!(done.iter().filter(|done| **done == Updated::Written(round + 1)).count(), 1, "{done:?}");
    }
}
