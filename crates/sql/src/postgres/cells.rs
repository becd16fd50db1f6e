//! Cells: small versioned values beside the locks.
//!
//! Versions come from one counter for all cells, which outlives every cell: none is ever given twice.

use std::{sync::atomic::Ordering, time::Duration};

use leasehold_core::backend::{Cell, CellWrite, Expect};
use tokio_postgres::{Row, types::Type};

use super::{
    PostgresDatabase,
    database::{Parameter, strange},
    statements::now,
};
use crate::server::{
    Tried,
    database::{Begin, micros, signed, unsigned},
};

/// After how many writes of ours expired cells are removed.
const EVERY: u64 = 64;

/// The next version; whoever asks waits for whoever asked before.
macro_rules! next {
    () => {
        "WITH next AS (UPDATE leasehold_meta SET value = value + 1 WHERE name = 'cell' RETURNING value) "
    };
}

const READ: &str = concat!(
    "SELECT name, version, value FROM leasehold_cell WHERE name = $1 AND (until IS NULL OR until > ",
    now!(),
    ")"
);

/// Name, value, ttl: if there is none, or only one that is over.
const MAKE: &str = concat!(
    next!(),
    "INSERT INTO leasehold_cell AS c (name, version, value, until)
     SELECT $1, next.value, $2, ",
    now!(),
    " + $3 FROM next
     ON CONFLICT (name) DO UPDATE
     SET version = excluded.version, value = excluded.value, until = excluded.until
     WHERE c.until <= ",
    now!(),
    " RETURNING version"
);

/// Name, value, ttl, version.
const CHANGE: &str = concat!(
    next!(),
    "UPDATE leasehold_cell c SET version = next.value, value = $2, until = ",
    now!(),
    " + $3 FROM next
     WHERE c.name = $1 AND c.version = $4 AND (c.until IS NULL OR c.until > ",
    now!(),
    ") RETURNING c.version"
);

const BURY: &str = concat!(
    "DELETE FROM leasehold_cell WHERE name IN (
       SELECT name FROM leasehold_cell WHERE until <= ",
    now!(),
    " ORDER BY until LIMIT 256 FOR UPDATE SKIP LOCKED) RETURNING 1"
);

pub(super) async fn read(database: &PostgresDatabase, name: &str) -> Tried<Option<Cell>> {
    let rows = database.ask(READ, &[(&name, Type::TEXT)]).await?;
    rows.first().map(cell).transpose()
}

pub(super) async fn write(
    database: &PostgresDatabase,
    name: &str,
    expect: Expect,
    value: &[u8],
    ttl: Option<Duration>,
) -> Tried<CellWrite> {
    let ttl = ttl.map(micros);
    let common: [Parameter<'_>; 3] = [(&name, Type::TEXT), (&value, Type::BYTEA), (&ttl, Type::INT8)];
    let rows = match expect {
        Expect::Absent => database.ask(MAKE, &common).await?,
        Expect::Version(version) => {
            let version = signed(version)?;
            let [name, value, ttl] = common;
            database.ask(CHANGE, &[name, value, ttl, (&version, Type::INT8)]).await?
        }
    };
    if database.cell_writes.fetch_add(1, Ordering::Relaxed) % EVERY == EVERY - 1 {
        // To fail is no harm: what is over is not shown, and the next will do it.
        let _ = bury(database).await;
    }
    match rows.first() {
        Some(row) => Ok(CellWrite::Written(unsigned(row.try_get(0).map_err(strange)?))),
        None => Ok(CellWrite::Conflict),
    }
}

/// Removes some cells that are over. Says how many.
pub(super) async fn bury(database: &PostgresDatabase) -> Tried<u64> {
    Ok(database.ask(BURY, &[]).await?.len() as u64)
}

pub(super) async fn list(database: &PostgresDatabase, from: Begin<'_>, limit: usize) -> Tried<Vec<Cell>> {
    let list = format!(
        "SELECT name, version, value FROM leasehold_cell
         WHERE name {} $1 AND (until IS NULL OR until > {}) ORDER BY name LIMIT $2",
        from.comparison(),
        now!()
    );
    let (name, limit) = (from.name(), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = database.ask(&list, &[(&name, Type::TEXT), (&limit, Type::INT8)]).await?;
    rows.iter().map(cell).collect()
}

fn cell(row: &Row) -> Tried<Cell> {
    let version: i64 = row.try_get(1).map_err(strange)?;
    let (name, value) = (row.try_get(0).map_err(strange)?, row.try_get(2).map_err(strange)?);
    Ok(Cell { name, version: unsigned(version), value })
}
