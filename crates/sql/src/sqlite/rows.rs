//! Rows of the table of records: reading one, keeping one, removing one, and the floor under all of them.
//!
//! All of it happens within a transaction that the caller has begun.

use std::collections::HashSet;

use leasehold_core::{ClientId, Error, ErrorKind, Operation, Result, backend::record::Record};
use rusqlite::{Connection, OptionalExtension, params};

use super::{error::Tried, recent::Written};

/// The record of a name, a new one if there is none. One that we cannot read is the trouble of that name alone.
pub(super) fn load(connection: &Connection, name: &str) -> Tried<Result<Record>> {
    let mut statement =
        connection.prepare_cached("SELECT fence, record FROM leasehold_record WHERE name = ?1")?;
    let row = statement.query_row([name], |row| {
        let text = row.get_ref(1)?.as_str_or_null()?;
        Ok((row.get(0)?, text.map(Record::decode)))
    });
    Ok(match row.optional()? {
        Some((_, Some(record))) => record,
        Some((fence, None)) => Ok(Record::new(unsigned(fence))),
        None => Ok(Record::new(floor(connection)?)),
    })
}

/// Writes a row, whatever it said before.
pub(super) fn save(connection: &Connection, name: &str, written: &Written) -> Tried<()> {
    let mut save = connection.prepare_cached(
        "INSERT INTO leasehold_record (name, fence, record) VALUES (?1, ?2, ?3)
         ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, record = excluded.record",
    )?;
    save.execute(params![name, signed(written.record.fence())?, written.text])?;
    Ok(())
}

/// Writes a row if it still says what it said before. Says whether it did.
pub(super) fn swap(
    connection: &Connection,
    name: &str,
    (fence, text): (u64, Option<String>),
    written: &Written,
) -> Tried<bool> {
    let mut swap = connection.prepare_cached(
        "UPDATE leasehold_record SET fence = ?4, record = ?5 WHERE name = ?1 AND fence = ?2 AND record IS ?3",
    )?;
    let changed =
        swap.execute(params![name, signed(fence)?, text, signed(written.record.fence())?, written.text])?;
    Ok(changed == 1)
}

/// Removes the row of a name. The floor must have been raised to its fence before, in the same transaction.
pub(super) fn remove(connection: &Connection, name: &str) -> Tried<()> {
    connection.prepare_cached("DELETE FROM leasehold_record WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// How many rows are read at once in search of sessions.
const STRETCH: u32 = 1024;

/// Those of the sessions that no record mentions; none if there are more than `most` rows to look at.
///
/// Not in one transaction, and need not be: a session that is over is entered nowhere any more.
pub(super) fn unmentioned(
    connection: &Connection,
    sessions: impl IntoIterator<Item = ClientId>,
    most: u32,
) -> Tried<HashSet<ClientId>> {
    let mut left: HashSet<_> = sessions.into_iter().collect();
    let mut statement = connection
        .prepare_cached("SELECT name, record FROM leasehold_record WHERE name > ?1 ORDER BY name LIMIT ?2")?;
    let (mut seen, mut cursor) = (0_u32, String::new());
    while !left.is_empty() {
        let mut rows = statement.query(params![cursor, STRETCH])?;
        let before = seen;
        while let Some(row) = rows.next()? {
            if let Some(text) = row.get_ref(1)?.as_str_or_null().map_err(rusqlite::Error::from)? {
                mentions(text).for_each(|session| _ = left.remove(&session));
            }
            seen += 1;
            if seen - before == STRETCH {
                cursor = row.get(0)?;
            }
        }
        if seen - before < STRETCH {
            break;
        }
        if seen >= most {
            left.clear();
        }
    }
    Ok(left)
}

/// The sessions a record's text speaks of. Within a string its quotes would be escaped, so nobody's label is one.
fn mentions(text: &str) -> impl Iterator<Item = ClientId> {
    let fields = text.split("\"session\":\"").skip(1);
    fields.filter_map(|field| field.split('"').next()?.parse().ok())
}

/// What every new record starts from: no fence of a name whose row was removed is greater.
pub(super) fn floor(connection: &Connection) -> Tried<u64> {
    let mut statement = connection.prepare_cached("SELECT value FROM leasehold_meta WHERE key = 'floor'")?;
    Ok(unsigned(statement.query_row([], |row| row.get(0))?))
}

/// Raises the floor to at least this.
pub(super) fn raise_floor(connection: &Connection, fence: u64) -> Tried<()> {
    let raise = "UPDATE leasehold_meta SET value = max(value, ?1) WHERE key = 'floor'";
    connection.prepare_cached(raise)?.execute([signed(fence)?])?;
    Ok(())
}

/// The first name a page may hold; the cursor itself was on the page before.
pub(super) fn from<'t>(prefix: &'t str, cursor: Option<&'t str>) -> &'t str {
    cursor.map_or(prefix, |cursor| cursor.max(prefix))
}

/// SQLite's integers have a sign. Ours grow by one from zero, so the cast is exact.
pub(super) fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

pub(super) fn signed(number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|error| {
        Error::new(ErrorKind::Internal, Operation::Inspect, "a number grew too large").because(error)
    })
}
