//! What operators see: one name, or a page of names.

use leasehold_core::backend::{LockPage, LockState, record::Record};
use rusqlite::{Connection, params};

use super::{clock, connection::Transaction, error::Tried, rows, session::RollCall};

/// How many rows one page looks at beyond those it shows: rows whose leases have run out are not shown.
const BLANKS: usize = 4096;

/// Everything known of one name.
pub(super) fn inspect(connection: &Connection, name: &str, roll: &RollCall<'_>) -> Tried<Option<LockState>> {
    let _snapshot = Transaction::read(connection)?;
    let record = rows::load(connection, name)??;
    Ok(roll.around(clock::now(), |around| record.view(name, around)))
}

/// One page of names in use, ordered by name. It may be short, even empty, and not the last: `next` tells.
pub(super) fn list(
    connection: &Connection,
    (prefix, cursor, limit): (&str, Option<&str>, usize),
    roll: &RollCall<'_>,
) -> Tried<LockPage> {
    let _snapshot = Transaction::read(connection)?;
    let limit = limit.max(1);
    let mut statement = connection.prepare_cached(
        "SELECT name, record FROM leasehold_record
         WHERE name >= ?1 AND name IS NOT ?2 AND record IS NOT NULL ORDER BY name",
    )?;
    let mut found = statement.query(params![rows::from(prefix, cursor), cursor])?;
    let (mut page, mut seen, mut last) = (LockPage::default(), 0, None);
    while let Some(row) = found.next()? {
        let name: String = row.get(0)?;
        if !name.starts_with(prefix) {
            break;
        }
        if page.locks.len() == limit || seen == limit.saturating_add(BLANKS) {
            page.next = last;
            break;
        }
        let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        let record = Record::decode(text).map_err(|error| error.about(&name))?;
        page.locks.extend(roll.around(clock::now(), |around| record.view(&name, around)));
        (last, seen) = (Some(name), seen + 1);
    }
    Ok(page)
}
