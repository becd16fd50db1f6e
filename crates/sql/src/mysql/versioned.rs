//! Optimistic updates of the user's own rows in MySQL.

use leasehold_core::Result;
use mysql_async::{Params, Value, prelude::Queryable};

use super::error::failed;
use crate::server::{Failure, Updated, Versioned};

impl Versioned<'_> {
    /// Sets columns of the row named `key` if it still has the version that was `seen`, and raises that by one. `set` is
    /// SQL of the program's own, such as `amount = ?, note = ?`, with a value for each.
    ///
    /// The version always changes, so an update that writes what was there already counts all the same.
    ///
    /// # Errors
    /// `Config` for names that are none; whatever the server says otherwise. Not to find the row as it was is no error.
    ///
    /// # Cancel safety
    /// Dropped half-way the update may have been made, unless it is part of a transaction that is rolled back.
    pub async fn update_mysql<Q: Queryable>(
        self,
        client: &mut Q,
        (key, seen): (impl Into<Value> + Send, i64),
        set: &'static str,
        values: Vec<Value>,
    ) -> Result<Updated> {
        let Self { table, key: column, version } = self.checked()?;
        let update = format!(
            "UPDATE {table} SET {set}, {version} = {version} + 1 WHERE {column} = ? AND {version} = ?"
        );
        let mut parameters = values;
        parameters.extend([key.into(), Value::from(seen)]);
        let done = client.exec_iter(update, Params::Positional(parameters)).await;
        let result = done.map_err(|error| failed(&error)).map_err(Failure::into_error)?;
        let affected = result.affected_rows();
        result.drop_result().await.map_err(|error| failed(&error)).map_err(Failure::into_error)?;
        Ok(if affected == 1 { Updated::Written(seen + 1) } else { Updated::Stale })
    }
}
