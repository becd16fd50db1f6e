//! Optimistic updates of the user's own rows in MySQL.

use leasehold_core::{Error, Result};
use mysql_async::{Params, Value, prelude::Queryable};

use super::error::failed;
use crate::server::{Updated, Versioned, versioned::several};

impl Versioned<'_> {
    /// Sets columns of the row named `key` if it still has the version that was `seen`, and raises that by one. `set` is
    /// SQL of the program's own, such as `amount = ?, note = ?`, with a value for each.
    ///
    /// The version always changes, so an update that writes what was there already counts all the same.
    ///
    /// # Errors
    /// `Config` for names that are none, or if several rows have the key, none of which is changed then; whatever the server says otherwise. Not to find the row as it was is no error.
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
        let same = format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {column} = ? LIMIT 2");
        // Locked for the update at once: two who first shared them would stand in each other's way.
        let update = format!(
            "UPDATE {table} SET {set}, {version} = {version} + 1
             WHERE {column} = ? AND {version} = ? AND ({same} FOR UPDATE) found) = 1"
        );
        let key = key.into();
        let mut parameters = values;
        parameters.extend([key.clone(), Value::from(seen), key.clone()]);
        let done = client.exec_iter(update, Params::Positional(parameters)).await.map_err(told)?;
        let affected = done.affected_rows();
        done.drop_result().await.map_err(told)?;
        if affected == 1 {
            return Ok(Updated::Written(seen + 1));
        }
        let count: Option<u64> =
            client.exec_first(format!("{same}) found"), vec![key]).await.map_err(told)?;
        if count.is_some_and(|count| count > 1) { Err(several(self)) } else { Ok(Updated::Stale) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn told(error: mysql_async::Error) -> Error {
    failed(&error).into_error()
}
