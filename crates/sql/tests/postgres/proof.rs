//! A write commits with the proof of holding, or not at all.

use leasehold_core::{Client, ErrorKind, backend::Memory};
use leasehold_sql::postgres::InTransaction as _;
use tokio::runtime::Handle;

use super::{Place, waiting_for_locks};
use crate::servers::eventually;

#[tokio::test]
async fn a_held_lock_lets_the_write_commit() {
    let place = Place::new().await;
    let (client, mut plain) = (place.client().await, place.plain().await);
    plain.batch_execute("CREATE TABLE stock (amount int); INSERT INTO stock VALUES (1)").await.unwrap();
    let guard = client.lock("stock").acquire().await.unwrap();
    let transaction = plain.transaction().await.unwrap();
    guard.in_transaction(&transaction).await.unwrap();
    transaction.execute("UPDATE stock SET amount = 2", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_lost_lock_is_told_within_the_transaction() {
    let place = Place::new().await;
    let (client, mut plain) = (place.client().await, place.plain().await);
    let guard = client.lock("stock").acquire().await.unwrap();
    // The store forgets it, and the holder does not know yet.
    plain.batch_execute("UPDATE leasehold_record SET record = NULL, version = version + 1").await.unwrap();
    let transaction = plain.transaction().await.unwrap();
    assert_eq!(guard.in_transaction(&transaction).await.unwrap_err().kind(), ErrorKind::Lost);
    transaction.rollback().await.unwrap();
    plain.batch_execute("DELETE FROM leasehold_record").await.unwrap();
    let transaction = plain.transaction().await.unwrap();
    assert_eq!(guard.in_transaction(&transaction).await.unwrap_err().kind(), ErrorKind::Lost);
}

/// A lock that is somewhere else is no lock here, whatever its name.
#[tokio::test]
async fn a_lock_of_another_store_proves_nothing() {
    let place = Place::new().await;
    let (_store, mut plain) = (place.open().await, place.plain().await);
    let guard = Client::new(Memory::new()).lock("stock").acquire().await.unwrap();
    let transaction = plain.transaction().await.unwrap();
    assert_eq!(guard.in_transaction(&transaction).await.unwrap_err().kind(), ErrorKind::Unsupported);
}

/// Between the proof and the commit nobody is granted the lock, though it is given back meanwhile.
#[tokio::test]
async fn nobody_is_granted_the_lock_before_the_commit() {
    let place = Place::new().await;
    let (client, other) = (place.client().await, place.client().await);
    let (mut plain, watcher) = (place.plain().await, place.plain().await);
    let guard = client.lock("stock").acquire().await.unwrap();
    let transaction = plain.transaction().await.unwrap();
    guard.in_transaction(&transaction).await.unwrap();
    let passes_on = Handle::current().spawn(async move {
        guard.release().await.unwrap();
        other.lock("stock").acquire().await.unwrap()
    });
    eventually(async || waiting_for_locks(&watcher).await == 1).await;
    assert!(!passes_on.is_finished(), "it was passed on before the commit");
    transaction.commit().await.unwrap();
    passes_on.await.unwrap().release().await.unwrap();
}

/// The optimistic lock: whoever comes second is told so, and nothing of theirs is written.
#[tokio::test]
async fn a_row_that_changed_is_not_overwritten() {
    use leasehold_sql::{Updated, Versioned};
    let place = Place::new().await;
    let plain = place.plain().await;
    plain
        .batch_execute(
            "CREATE TABLE stock (id int, amount int, version bigint); INSERT INTO stock VALUES (7, 1, 1)",
        )
        .await
        .unwrap();
    let stock = Versioned::new("stock", "id", "version");
    let update = async |amount: i32| stock.update(&plain, (&7, 1), "amount = $3", &[&amount]).await.unwrap();
    assert_eq!(update(5).await, Updated::Written(2));
    assert_eq!(update(9).await, Updated::Stale);
    let row = plain.query_one("SELECT amount, version FROM stock", &[]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (5, 2));
}

/// Which of them was meant nobody knows.
#[tokio::test]
async fn rows_that_share_their_key_are_not_updated() {
    use leasehold_sql::Versioned;
    let place = Place::new().await;
    let plain = place.plain().await;
    let table = "CREATE TABLE stock (id int, amount int, version bigint)";
    plain.batch_execute(&format!("{table}; INSERT INTO stock VALUES (7, 1, 1), (7, 2, 1)")).await.unwrap();
    let stock = Versioned::new("stock", "id", "version");
    let error = stock.update(&plain, (&7, 1), "amount = $3", &[&9]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("several rows of stock"), "{error}");
    let changed = "SELECT count(*) FROM stock WHERE amount = 9 OR version <> 1";
    assert_eq!(plain.query_one(changed, &[]).await.unwrap().get::<_, i64>(0), 0);
}
