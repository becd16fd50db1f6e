//! A write that commits only if the lock is held: the strongest there is, level S4.
//!
//! The row of the lock is read within the user's own transaction and kept from changing until that ends. So whoever is
//! granted the lock next is granted it after the commit, whatever clocks, pauses and networks do.

use leasehold_core::{
    Error, Guard, Operation, Proof, Result,
    backend::{Loss, record::Moment},
};
use tokio_postgres::{Transaction, types::Type};

use super::{database::strange, error::failed, statements::now};
use crate::server::{Row, database::unsigned, elsewhere};

/// The row, which nobody can change until the transaction ends, and the clock after that is so.
const PROVE: &str = concat!(
    "SELECT version, fence, fence_base, moment_base, record, ",
    now!(),
    " FROM leasehold_record WHERE name = $1 FOR SHARE"
);

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
    fn in_transaction(&self, transaction: &Transaction<'_>) -> impl Future<Output = Result<()>> + Send;
}

impl InTransaction for Guard {
    async fn in_transaction(&self, transaction: &Transaction<'_>) -> Result<()> {
        self.proof().in_transaction(transaction).await
    }
}

impl InTransaction for Proof {
    async fn in_transaction(&self, transaction: &Transaction<'_>) -> Result<()> {
        if self.store.scheme != "postgres" {
            return Err(elsewhere(self, "PostgreSQL"));
        }
        let name = self.key.full();
        let checking = |error: Error| error.during(Operation::Check).about(self.key.name());
        let asked = transaction.query_typed(PROVE, &[(&name, Type::TEXT)]).await;
        let rows = asked.map_err(|error| checking(failed(error).into_error()))?;
        let lost = || Error::from(Loss::Gone).about(self.key.name());
        let row = rows.first().ok_or_else(lost)?;
        let number = |at: usize| row.try_get::<_, i64>(at).map(unsigned).map_err(strange);
        let kept = Row {
            version: number(0)?,
            fence: number(1)?,
            fence_base: number(2)?,
            moment_base: Moment(number(3)?),
            text: row.try_get(4).map_err(strange)?,
        };
        let record = kept.record().map_err(checking)?;
        if record.is_held(self.id, Moment(number(5)?)) { Ok(()) } else { Err(lost()) }
    }
}
