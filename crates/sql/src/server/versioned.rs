//! A row of the user's own, changed only if nobody else has changed it since it was read: the optimistic lock.
//!
//! It holds nothing and waits for nobody; whoever comes second is told so and reads again. It protects one row in one
//! statement, and nothing that happens between the read and the write.

use leasehold_core::{Error, Operation, Result};

/// A table whose rows have a version: a number that every write raises by one.
///
/// All writes to such rows must raise it, or they are not noticed. The key is one row's: where several have it, nothing is
/// updated.
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until a row is updated with it"]
pub struct Versioned<'t> {
    pub(crate) table: &'t str,
    pub(crate) key: &'t str,
    pub(crate) version: &'t str,
}

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Updated {
    /// It is written; this is the row's version now.
    Written(i64),
    /// The row is gone, or somebody else has changed it since that version: read it again.
    Stale,
}

impl<'t> Versioned<'t> {
    /// Rows of `table`, named by the column `key`, with their version in the column `version`.
    pub fn new(table: &'t str, key: &'t str, version: &'t str) -> Self {
        Self { table, key, version }
    }

    /// Refuses names that are more than names: they become part of a statement.
    pub(crate) fn checked(self) -> Result<Self> {
        let is_name = |name: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
            !name.is_empty() && name.bytes().all(fits)
        };
        if [self.table, self.key, self.version].into_iter().all(is_name) {
            return Ok(self);
        }
        let message = "names of tables and columns are letters, digits, underscores and dots";
        Err(Error::config(Operation::Check, message))
    }
}

/// Several rows have the key, so it cannot tell which one was meant.
pub(crate) fn several(versioned: Versioned<'_>) -> Error {
    let Versioned { table, key, .. } = versioned;
    let message = format!(
        "several rows of {table} have this {key}, so nothing was changed; name rows by a column that is unique"
    );
    Error::config(Operation::Check, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_more_than_names_are_refused() {
        assert!(Versioned::new("shop.stock", "id", "version_2").checked().is_ok());
        for table in ["", "stock; DROP TABLE stock", "a b", "\"a\"", "a--"] {
            assert!(Versioned::new(table, "id", "version").checked().is_err(), "{table}");
        }
    }
}
