//! Optimistic updates of the user's own rows in PostgreSQL.

use leasehold_core::Result;
use tokio_postgres::{GenericClient, types::ToSql};

use super::{database::strange, error::failed};
use crate::server::{Failure, Updated, Versioned, versioned::several};

impl Versioned<'_> {
    /// Sets columns of the row named `key` if it still has the version that was `seen`, and raises that by one. `set` is
    /// SQL of the program's own, such as `amount = $3, note = $4`: `$1` and `$2` are the key and the version, `values`
    /// begin with `$3`.
    ///
    /// The column of the version is a `bigint`.
    ///
    /// # Errors
    /// `Config` for names that are none, or if several rows have the key, none of which is changed then; whatever the server says otherwise. Not to find the row as it was is no error.
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
        // At most the rows that are counted can be updated: both see the same.
        let update = format!(
            "WITH same AS (SELECT count(*) AS n FROM (SELECT FROM {table} WHERE {column} = $1 LIMIT 2) found),
             done AS (UPDATE {table} SET {set}, {version} = {version} + 1
                      WHERE {column} = $1 AND {version} = $2 AND (SELECT n FROM same) = 1 RETURNING {version})
             SELECT (SELECT n FROM same), (SELECT {version} FROM done)"
        );
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![key, &seen];
        parameters.extend(values);
        let row =
            client.query_one(&update, &parameters).await.map_err(failed).map_err(Failure::into_error)?;
        if row.try_get::<_, i64>(0).map_err(strange)? > 1 {
            return Err(several(self));
        }
        Ok(row.try_get::<_, Option<i64>>(1).map_err(strange)?.map_or(Updated::Stale, Updated::Written))
    }
}
