//! Cells: small versioned values beside the locks.
//!
//! Versions come from one counter for all cells, which outlives every cell: none is ever given twice.

use std::{sync::atomic::Ordering, time::Duration};

use leasehold_core::backend::{Cell, CellWrite, Expect};

use super::{
    MySqlDatabase,
    database::{affected, value},
    statements::{NOW, bytes},
};
use crate::server::{Begin, Tried, database::micros};

/// After how many writes of ours expired cells are removed.
const EVERY: u64 = 64;

/// The next version, which the statements after it know as `LAST_INSERT_ID()`.
const NEXT: &str = "UPDATE leasehold_meta SET value = LAST_INSERT_ID(value + 1) WHERE name = 'cell'";

pub(super) async fn read(database: &MySqlDatabase, name: &str) -> Tried<Option<Cell>> {
    let read = format!(
        "SELECT name, version, value FROM leasehold_cell WHERE name = {} AND (until IS NULL OR until > {NOW})",
        bytes(name.as_bytes())
    );
    Ok(shown(database, &read).await?.pop())
}

pub(super) async fn write(
    database: &MySqlDatabase,
    name: &str,
    expect: Expect,
    value: &[u8],
    ttl: Option<Duration>,
) -> Tried<CellWrite> {
    let (name, value) = (bytes(name.as_bytes()), bytes(value));
    let until = ttl.map_or_else(|| "NULL".to_owned(), |ttl| format!("{NOW} + {}", micros(ttl)));
    let write = match expect {
        // In order: whether the old one is over is asked before its end is overwritten.
        Expect::Absent => format!(
            "INSERT INTO leasehold_cell (name, version, value, until)
             VALUES ({name}, LAST_INSERT_ID(), {value}, {until})
             ON DUPLICATE KEY UPDATE
               version = IF(leasehold_cell.until <= {NOW}, LAST_INSERT_ID(), leasehold_cell.version),
               value = IF(leasehold_cell.until <= {NOW}, {value}, leasehold_cell.value),
               until = IF(leasehold_cell.until <= {NOW}, {until}, leasehold_cell.until)"
        ),
        Expect::Version(version) => format!(
            "UPDATE leasehold_cell SET version = LAST_INSERT_ID(), value = {value}, until = {until}
             WHERE name = {name} AND version = {version} AND (until IS NULL OR until > {NOW})"
        ),
    };
    // What was done is told by a last statement, so that its being read proves that all were.
    let answers = database.ask(&format!("{NEXT}; {write}; SELECT ROW_COUNT(), LAST_INSERT_ID()")).await?;
    if database.cell_writes.fetch_add(1, Ordering::Relaxed) % EVERY == EVERY - 1 {
        // To fail is no harm: what is over is not shown, and the next will do it.
        let _ = bury(database).await;
    }
    let Some(row) = answers.last().and_then(|answer| answer.rows.first()) else {
        return Ok(CellWrite::Conflict);
    };
    let (changed, version): (i64, u64) = (self::value(row, 0)?, self::value(row, 1)?);
    Ok(if changed > 0 { CellWrite::Written(version) } else { CellWrite::Conflict })
}

/// Removes some cells that are over. Says how many.
pub(super) async fn bury(database: &MySqlDatabase) -> Tried<u64> {
    let bury = format!("DELETE FROM leasehold_cell WHERE until <= {NOW} ORDER BY until LIMIT 256");
    Ok(affected(&database.ask(&bury).await?))
}

pub(super) async fn list(database: &MySqlDatabase, from: Begin<'_>, limit: usize) -> Tried<Vec<Cell>> {
    let list = format!(
        "SELECT name, version, value FROM leasehold_cell
         WHERE name {} {} AND (until IS NULL OR until > {NOW}) ORDER BY name LIMIT {limit}",
        from.comparison(),
        bytes(from.name().as_bytes())
    );
    shown(database, &list).await
}

async fn shown(database: &MySqlDatabase, statement: &str) -> Tried<Vec<Cell>> {
    let answers = database.ask(statement).await?;
    let mut cells = Vec::new();
    for row in answers.iter().flat_map(|answer| &answer.rows) {
        cells.push(Cell { name: value(row, 0)?, version: value(row, 1)?, value: value(row, 2)? });
    }
    Ok(cells)
}
