//! Optimistic updates of the user's own rows in PostgreSQL.

use leasehold_core::Result;
use tokio_postgres::{GenericClient, types::ToSql};

use super::{database::strange, error::failed};
use crate::server::{Failure, Updated, Versioned};

impl Versioned<'_> {
    /// Sets columns of the row named `key` if it still has the version that was `seen`, and raises that by one. `set` is
    /// SQL of the program's own, such as `amount = $3, note = $4`: `$1` and `$2` are the key and the version, `values`
    /// begin with `$3`.
    ///
    /// The column of the version is a `bigint`.
    ///
    /// # Errors
    /// `Config` for names that are none; whatever the server says otherwise. Not to find the row as it was is no error.
    ///
    /// # Cancel safety
    /// Dropped half-way the update may have been made, unless it is part of a transaction that is rolled back.
    pub async fn update(
        self,
        client: &(impl GenericClient + Sync),
        (key, seen): (&(dyn ToSql + Sync), i64),
        set: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Updated> {
        let Self { table, key: column, version } = self.checked()?;
        let update = format!(
            "UPDATE {table} SET {set}, {version} = {version} + 1 WHERE {column} = $1 AND {version} = $2 RETURNING {version}"
        );
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![key, &seen];
        parameters.extend(values);
        let row =
            client.query_opt(&update, &parameters).await.map_err(failed).map_err(Failure::into_error)?;
        Ok(match row {
            Some(row) => Updated::Written(row.try_get(0).map_err(strange)?),
            None => Updated::Stale,
        })
    }
}
