//! The tables: created when a store is first opened, or by whoever may.

use leasehold_core::{Error, ErrorKind, Operation, Result};

use super::{
    MySqlDatabase,
    database::value,
    error::{is_missing, lacks_column, lacks_rights},
};
use crate::server::{Failure, Tried};

/// The SQL that creates the tables of locks, for those whose rights do not allow the program itself to: run it once as
/// somebody who may, and grant `SELECT, INSERT, UPDATE, DELETE` on the three tables to who locks.
///
/// Names are bytes: neither case nor blanks at the end are folded. `due` says from when on a row may be removed, to ten
/// minutes, so that its index seldom changes.
pub const TABLES: &str = "\
CREATE TABLE IF NOT EXISTS leasehold_record (
    name VARBINARY(1024) NOT NULL PRIMARY KEY,
    version BIGINT UNSIGNED NOT NULL,
    fence BIGINT UNSIGNED NOT NULL,
    fence_base BIGINT UNSIGNED NOT NULL,
    moment_base BIGINT UNSIGNED NOT NULL,
    due BIGINT UNSIGNED,
    record MEDIUMBLOB,
    KEY due (due)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS leasehold_meta (
    name VARBINARY(16) NOT NULL PRIMARY KEY,
    value BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS leasehold_cell (
    name VARBINARY(1024) NOT NULL PRIMARY KEY,
    version BIGINT UNSIGNED NOT NULL,
    value MEDIUMBLOB NOT NULL,
    until BIGINT UNSIGNED,
    KEY until (until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
INSERT INTO leasehold_meta (name, value) VALUES ('floor', 0), ('cell', 0) ON DUPLICATE KEY UPDATE value = value;
";

/// The server and the database, if our tables are there and complete.
const IDENTITY: &str = "SELECT CONCAT(DATABASE(), '@', @@hostname, ':', @@port) FROM leasehold_meta m
    LEFT JOIN leasehold_record r ON r.due < 0 AND FALSE LEFT JOIN leasehold_cell c ON FALSE WHERE m.name = 'floor'";

/// Sees to it that the tables are there. Says what tells this database from every other.
pub(super) async fn prepare(database: &MySqlDatabase) -> Result<String> {
    match identify(database).await {
        Err(failure) if is_missing(&failure) => {}
        Ok(None) => {}
        Ok(Some(identity)) => return Ok(identity),
        Err(failure) => return Err(explained(failure)),
    }
    for statement in TABLES.split_inclusive(";\n") {
        database.ask(statement.trim_end_matches([';', '\n'])).await.map_err(explained)?;
    }
    let identity = identify(database).await.map_err(explained)?;
    identity.ok_or_else(|| {
        let message =
            "our tables were created and are not as they should be; do other tables have their names?";
        Error::new(ErrorKind::Internal, Operation::Connect, message)
    })
}

/// `None` if the floor is missing: the tables were created by hand and not filled.
async fn identify(database: &MySqlDatabase) -> Tried<Option<String>> {
    let answers = database.ask(IDENTITY).await?;
    let row = answers.last().and_then(|answer| answer.rows.first());
    Ok(row.map(|row| value(row, 0)).transpose()?)
}

/// What tables of an older layout lack.
const NEWER: &str = "ALTER TABLE leasehold_record ADD COLUMN due BIGINT UNSIGNED, ADD KEY due (due);";

/// An error of rights, or of tables that an older version made, says what somebody can do about it.
fn explained(failure: Failure) -> Error {
    let error = failure.into_error();
    if lacks_column(&error) {
        let message = format!(
            "our tables are of an older version; let somebody who may run this, while nobody locks:\n{NEWER}"
        );
        let cause = error.cause().map(ToString::to_string).unwrap_or_default();
        return Error::config(Operation::Connect, message).because(cause);
    }
    if !lacks_rights(&error) {
        return error;
    }
    let message = format!(
        "we may not create or use the tables of locks; let somebody who may run this, and grant SELECT, INSERT, \
         UPDATE, DELETE on leasehold_record, leasehold_meta and leasehold_cell to us:\n{TABLES}"
    );
    let cause = error.cause().map(ToString::to_string).unwrap_or_default();
    Error::new(ErrorKind::Denied, Operation::Connect, message).because(cause)
}
