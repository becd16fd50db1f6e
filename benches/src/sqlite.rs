//! The SQLite store against two bare transactions on the same file: what the lock costs beyond the database.

use leasehold::connect;
use rusqlite::{Connection, TransactionBehavior};
use tokio::runtime::Runtime;

use crate::{alternate::alternate, report::Report};

pub(crate) fn run(report: &mut Report, runtime: &Runtime) {
    let folder = tempfile::tempdir().expect("a folder for the database");
    let file = folder.path().join("locks.db");
    let url = format!("sqlite:{}", file.display());
    let locks = runtime.block_on(connect(&url)).expect("a new database opens");
    let mut bare = bare(&file).expect("the same file opens");
    let lock = locks.lock("one");
    let mut ours = |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let guard = lock.acquire().await.expect("nobody else asks for it");
                guard.release().await.expect("it is held");
            }
        });
    };
    let mut round = 0_u64;
    let mut theirs = |times| {
        for _ in 0..2 * times {
            round += 1;
            transaction(&mut bare, round).expect("nobody else writes");
        }
    };
    let comparison = alternate(15, 1_000, &mut ours, &mut theirs);
    report.rate("sqlite: acquire+release", "two bare transactions", &comparison, 0.7);
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
