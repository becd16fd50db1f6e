//! The SQLite store against two bare transactions on the same file: what the lock costs beyond the database.

use leasehold::connect;
use rusqlite::{Connection, TransactionBehavior};

use crate::{
    alternate::alternate,
    findings::{Findings, Table},
    harness::Stage,
};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    stage.progress.section("SQLite", 1);
    stage.progress.step("uncontended");
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| said(&error))?;
    let folder = tempfile::tempdir().map_err(|error| said(&error))?;
    let file = folder.path().join("locks.db");
    let url = format!("sqlite:{}", file.display());
    let locks = runtime.block_on(connect(&url)).map_err(|error| said(&error))?;
    let mut bare = bare(&file).map_err(|error| said(&error))?;
    let lock = locks.lock("one");
    let (mut failed, mut bare_failed) = (Ok(()), Ok(()));
    let mut ours = |times| {
        let done: leasehold::Result<()> = runtime.block_on(async {
            for _ in 0..times {
                lock.acquire().await?.release().await?;
            }
            Ok(())
        });
        failed = done.map_err(|error| said(&error));
    };
    let mut round = 0_u64;
    let mut theirs = |times| {
        for _ in 0..2 * times {
            round += 1;
            if let Err(error) = transaction(&mut bare, round) {
                bare_failed = Err(said(&error));
            }
        }
    };
    let (rounds, times) = stage.args.pick((3, 200), (15, 1_000));
    let comparison = alternate(rounds, times, &mut ours, &mut theirs)?;
    failed.and(bare_failed)?;
    findings.target("sqlite.rate", Ok(1.0 / comparison.slowdown()));
    let head = ["", "ours", "two bare transactions", "×"];
    let mut table = Table::new("SQLite", "", &head);
    table.row(comparison.cells("uncontended pair, µs", 1e3));
    findings.tables.push(table);
    Ok(())
}

/// A connection as anybody would set it up for speed, with a table of its own.
fn bare(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch("CREATE TABLE bare (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")?;
    Ok(connection)
}

/// One row of about the size of a record, written in one transaction. It differs each time: SQLite writes no page
/// that is as it was.
fn transaction(connection: &mut Connection, round: u64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction
        .prepare_cached(
            "INSERT INTO bare VALUES ('one', ?1) ON CONFLICT DO UPDATE SET value = excluded.value",
        )?
        .execute([format!("{round:0300}")])?;
    transaction.commit()
}
