//! Cells: small versioned values beside the locks, written to disk before the write is answered.
//!
//! A cell may say that a job's slot has been run; if a power cut could take that back, the job would run twice. So
//! cells have a connection that waits for the disk, and a version, once given, is never given again: versions come
//! from one counter for all cells, which outlives every cell.

use std::time::Duration;

use leasehold_core::backend::{Cell, CellPage, CellWrite, Expect, record::Moment};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{clock, connection::Transaction, error::Tried, rows};

/// The longest ttl, in microseconds: added to any clock it is still a number.
const EVER: i64 = i64::MAX / 2;

/// How many expired cells one write removes.
const BURIED: i64 = 64;

pub(super) fn read(connection: &Connection, name: &str) -> Tried<Option<Cell>> {
    let _snapshot = Transaction::read(connection)?;
    find(connection, name, clock::now())
}

pub(super) fn write(
    connection: &Connection,
    name: &str,
    expect: Expect,
    value: &[u8],
    ttl: Option<Duration>,
) -> Tried<CellWrite> {
    let transaction = Transaction::write(connection)?;
    let now = clock::now();
    let found = find(connection, name, now)?.map(|cell| cell.version);
    let wanted = match expect {
        Expect::Absent => None,
        Expect::Version(version) => Some(version),
    };
    if found != wanted {
        return Ok(CellWrite::Conflict);
    }
    let version = next_version(connection)?;
    let ttl = ttl.map(|ttl| i64::try_from(ttl.as_micros()).unwrap_or(EVER).min(EVER));
    let now = rows::signed(now.0)?;
    let until = ttl.map(|ttl| now.saturating_add(ttl));
    let keep = "INSERT INTO leasehold_cell (name, version, value, ttl, until) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (name) DO UPDATE
                SET version = excluded.version, value = excluded.value, ttl = excluded.ttl, until = excluded.until";
    connection.prepare_cached(keep)?.execute(params![name, version, value, ttl, until])?;
    let bury = "DELETE FROM leasehold_cell
                WHERE name IN (SELECT name FROM leasehold_cell WHERE until <= ?1 LIMIT ?2)";
    connection.prepare_cached(bury)?.execute([now, BURIED])?;
    transaction.commit()?;
    Ok(CellWrite::Written(rows::unsigned(version)))
}

/// One page, ordered by name.
pub(super) fn list(
    connection: &Connection,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Tried<CellPage> {
    let _snapshot = Transaction::read(connection)?;
    let now = rows::signed(clock::now().0)?;
    let mut statement = connection.prepare_cached(
        "SELECT name, version, value FROM leasehold_cell
         WHERE name >= ?1 AND name IS NOT ?2 AND (until IS NULL OR until > ?3) ORDER BY name",
    )?;
    let mut found = statement.query(params![rows::from(prefix, cursor), cursor, now])?;
    let mut page = CellPage::default();
    while let Some(row) = found.next()? {
        let cell = cell(row)?;
        if !cell.name.starts_with(prefix) {
            break;
        }
        if page.cells.len() == limit.max(1) {
            page.next = page.cells.last().map(|cell| cell.name.clone());
            break;
        }
        page.cells.push(cell);
    }
    Ok(page)
}

fn find(connection: &Connection, name: &str, now: Moment) -> Tried<Option<Cell>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, version, value FROM leasehold_cell WHERE name = ?1 AND (until IS NULL OR until > ?2)",
    )?;
    Ok(statement.query_row(params![name, rows::signed(now.0)?], cell).optional()?)
}

fn cell(row: &Row<'_>) -> rusqlite::Result<Cell> {
    Ok(Cell { name: row.get(0)?, version: rows::unsigned(row.get(1)?), value: row.get(2)? })
}

fn next_version(connection: &Connection) -> Tried<i64> {
    let next = "UPDATE leasehold_meta SET value = value + 1 WHERE key = 'cell_version' RETURNING value";
    Ok(connection.prepare_cached(next)?.query_row([], |row| row.get(0))?)
}
