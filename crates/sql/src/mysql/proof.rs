//! A write that commits only if the lock is held: the strongest there is, level S4.
//!
//! The row of the lock is read within the user's own transaction by a locking read, which sees what is committed whatever
//! the transaction's snapshot, and is kept from changing until that ends. So whoever is granted the lock next is granted it
//! after the commit, whatever clocks, pauses and networks do.

use leasehold_core::{
    Error, Guard, Operation, Proof, Result,
    backend::{Loss, record::Moment},
};
use mysql_async::{Row, Transaction, prelude::Queryable as _};

use super::{
    database::{kept, value},
    error::failed,
    statements::{NOW, bytes},
};
use crate::server::elsewhere;

/// Ties a lock to a transaction of one's own, in the database that has the lock's tables.
pub trait InTransaction {
    /// Lets the transaction commit only if this lock is held, by the server's own account; it stays so until the
    /// transaction ends. Call it before or after your own writes, in any order.
    ///
    /// The lock's release, renewal and passing on wait for the transaction: keep it shorter than a third of the lease, or
    /// the renewal in its way will be late.
    ///
    /// # Errors
    /// `Lost` if the lock is not held any more: roll back. `Unsupported` if it is a lock of another kind of store. Any other
    /// kind: roll back too, nothing was proved.
    ///
    /// # Cancel safety
    /// Dropped half-way nothing was proved: roll back.
    fn in_transaction(&self, transaction: &mut Transaction<'_>) -> impl Future<Output = Result<()>> + Send;
}

impl InTransaction for Guard {
    async fn in_transaction(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        self.proof().in_transaction(transaction).await
    }
}

impl InTransaction for Proof {
    async fn in_transaction(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        if self.store.scheme != "mysql" {
            return Err(elsewhere(self, "MySQL"));
        }
        let prove = format!(
            "SELECT version, fence, fence_base, moment_base, record, {NOW} FROM leasehold_record
             WHERE name = {} LOCK IN SHARE MODE",
            bytes(self.key.full().as_bytes())
        );
        let checking = |error: Error| error.during(Operation::Check).about(self.key.name());
        let asked = transaction.query_first::<Row, _>(prove).await;
        let row = asked.map_err(|error| checking(failed(&error).into_error()))?;
        let lost = || Error::from(Loss::Gone).about(self.key.name());
        let row = row.ok_or_else(lost)?;
        let kept = kept(&row, 0)?.ok_or_else(lost)?;
        let record = kept.record().map_err(checking)?;
        if record.is_held(self.id, Moment(value(&row, 5)?)) { Ok(()) } else { Err(lost()) }
    }
}
