//! The tables: created when a store is first opened, or by whoever may.

use leasehold_core::{Error, ErrorKind, Operation, Result};

use super::{
    PostgresDatabase,
    error::{is_denied, is_missing, lacks_column},
};
use crate::server::Failure;

/// The SQL that creates the tables of locks, for those whose rights do not allow the program itself to: run it once as
/// their owner, and grant `SELECT, INSERT, UPDATE, DELETE` on the three tables to who locks.
///
/// Half of each page is left free, so that a row is rewritten in its place; `due` says from when on it may be removed, to
/// ten minutes, so that the index on it seldom stands in the way of that.
pub const TABLES: &str = "\
CREATE TABLE IF NOT EXISTS leasehold_record (
    name text COLLATE \"C\" PRIMARY KEY,
    version bigint NOT NULL,
    fence bigint NOT NULL,
    fence_base bigint NOT NULL,
    moment_base bigint NOT NULL,
    due bigint,
    record text
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS leasehold_record_due ON leasehold_record (due);
CREATE TABLE IF NOT EXISTS leasehold_meta (name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE IF NOT EXISTS leasehold_cell (
    name text COLLATE \"C\" PRIMARY KEY,
    version bigint NOT NULL,
    value bytea NOT NULL,
    until bigint
);
CREATE INDEX IF NOT EXISTS leasehold_cell_until ON leasehold_cell (until);
INSERT INTO leasehold_meta (name, value) VALUES ('floor', 0), ('cell', 0) ON CONFLICT DO NOTHING;
";

/// One at a time: two who create the same table at once would get in each other's way. The number is ours for this.
const ALONE: &str = "SELECT pg_advisory_xact_lock(7813031423614201);\n";

/// The database and its server, as no other has them, if our tables are there and complete.
const IDENTITY: &str = "SELECT current_database() || '@' || coalesce(
    (SELECT system_identifier::text FROM pg_control_system()), '?')
    FROM leasehold_record r RIGHT JOIN leasehold_meta m ON r.due < 0 AND false
    LEFT JOIN leasehold_cell c ON false WHERE m.name = 'floor'";

/// Sees to it that the tables are there. Says what tells this database from every other.
pub(super) async fn prepare(database: &PostgresDatabase) -> Result<String> {
    refuse_other_isolation(database).await?;
    match identify(database).await {
        Err(failure) if is_missing(&failure) => {}
        Ok(None) => {}
        Ok(Some(identity)) => return Ok(identity),
        Err(failure) => return Err(explained(failure)),
    }
    database.script(&format!("{ALONE}{TABLES}")).await.map_err(explained)?;
    let identity = identify(database).await.map_err(explained)?;
    identity.ok_or_else(|| {
        let message =
            "our tables were created and are not as they should be; do other tables have their names?";
        Error::new(ErrorKind::Internal, Operation::Connect, message)
    })
}

/// Under a stricter one a statement that waits for rows to be removed goes on with what was there before, and a name's
/// fences could begin anew. What is serializable would be told to try again only if all others are so too. To set it ourselves
/// would last in the sessions that a pooler lends.
async fn refuse_other_isolation(database: &PostgresDatabase) -> Result<()> {
    let level =
        database.script("SELECT current_setting('transaction_isolation')").await.map_err(explained)?;
    // The second is the same here.
    if matches!(level.as_deref(), Some("read committed" | "read uncommitted")) {
        return Ok(());
    }
    let level = level.unwrap_or_default().to_uppercase();
    let message = format!(
        "transactions of this user or database are {level} unless they say otherwise, under which locks are not safe; let \
         its owner run ALTER ROLE … SET default_transaction_isolation = 'read committed', or add \
         options=-c%20default_transaction_isolation%3Dread%5C%20committed to the store URL"
    );
    Err(Error::config(Operation::Connect, message))
}

/// `None` if the floor is missing: the tables were created by hand and not filled.
async fn identify(database: &PostgresDatabase) -> Result<Option<String>, Failure> {
    match database.script(IDENTITY).await {
        // Not everybody may ask for the server's number.
        Err(failure) if is_denied(&failure) => {
            let plain =
                "SELECT current_database() FROM leasehold_record r RIGHT JOIN leasehold_meta m ON r.due < 0 AND false
                         LEFT JOIN leasehold_cell c ON false WHERE m.name = 'floor'";
            let name = database.script(plain).await?;
            Ok(name.map(|name| format!("{name}@{}", database.config.place())))
        }
        identity => identity,
    }
}

/// What tables of an older layout lack.
const NEWER: &str = "\
ALTER TABLE leasehold_record ADD COLUMN due bigint;
CREATE INDEX IF NOT EXISTS leasehold_record_due ON leasehold_record (due);
";

/// An error of rights, or of tables that an older version made, says what somebody can do about it.
fn explained(failure: Failure) -> Error {
    if lacks_column(&failure) {
        let message = format!(
            "our tables are of an older version; let their owner run this, while nobody locks:\n{NEWER}"
        );
        let error = failure.into_error();
        let cause = error.cause().map(ToString::to_string).unwrap_or_default();
        return Error::config(Operation::Connect, message).because(cause);
    }
    if !is_denied(&failure) {
        return failure.into_error();
    }
    let error = failure.into_error();
    let cause = error.cause().map(ToString::to_string).unwrap_or_default();
    if !cause.contains("42501") {
        return error;
    }
    let message = format!(
        "we may not create or use the tables of locks; let their owner run this, and grant SELECT, INSERT, UPDATE, \
         DELETE on leasehold_record, leasehold_meta and leasehold_cell to us:\n{TABLES}"
    );
    Error::new(ErrorKind::Denied, Operation::Connect, message).because(cause)
}
