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
