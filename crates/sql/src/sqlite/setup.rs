//! Getting a file ready: tables, the format's version, and what a new boot voids.
//!
//! The first to open the store in a boot finds another boot's id in the file. Whatever was held or waited for then is
//! over, for no process survives a boot. Fences go on above all that were given out: above those in the file, and by
//! [`LEAP`] more for those that the machine lost with the last commits, which had not reached the disk. This is
//! written to disk before the first lock of the boot is granted, so it happens once per boot and is never undone.
//!
//! What does not live by a lease survives: latches keep their count, cells their value. The ttl of a cell begins
//! anew, since nobody knows how long the machine was off: cells may stay longer than asked for, never shorter.

use leasehold_core::{
    Error, ErrorKind, Operation,
    backend::{
        Kind, LatchStep,
        record::{Moment, Record, Step, Surroundings},
    },
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    clock::{self, Boot},
    connection::Transaction,
    error::{Tried, from_io},
    recent::Written,
    rows,
    session::Folder,
};

/// The format of the tables this version knows.
const FORMAT: i64 = 1;

/// More fences than one boot can hand out between two moments at which the disk had everything.
const LEAP: u64 = 1 << 32;

/// Whether the file is as this boot needs it. Only reads, so that opening does not wait for writers.
pub(super) fn is_ready(connection: &Connection, boot: &Boot) -> Tried<bool> {
    let _snapshot = Transaction::read(connection)?;
    let tables = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'leasehold_meta'";
    if connection.query_row(tables, [], |_| Ok(())).optional()?.is_none() {
        return Ok(false);
    }
    refuse_newer(connection)?;
    Ok(stored_boot(connection)? == boot.as_str())
}

/// Makes the file ready for this boot.
pub(super) fn make_ready(connection: &Connection, boot: &Boot, folder: &Folder) -> Tried<()> {
    let transaction = Transaction::write(connection)?;
    connection.execute_batch(include_str!("schema.sql"))?;
    let begin =
        "INSERT INTO leasehold_meta VALUES ('format', ?1), ('boot', ?2), ('floor', 0), ('cell_version', 0)
                 ON CONFLICT DO NOTHING";
    connection.execute(begin, params![FORMAT, boot.as_str()])?;
    refuse_newer(connection)?;
    if stored_boot(connection)? != boot.as_str() {
        refuse_shared(folder)?;
        begin_boot(connection, boot)?;
    }
    transaction.commit()
}

/// A session that lives in another boot than ours is not of an earlier boot: some containers make up a boot id of
/// their own. To void what it holds would give its locks to two.
fn refuse_shared(folder: &Folder) -> Tried<()> {
    let alive = folder.is_alive().map_err(|error| from_io(error, "cannot read the folder of sessions"))?;
    if !alive {
        return Ok(());
    }
    let message =
        "in use by processes that see another boot id (in a container?); give each side a file of its own";
    Err(Error::new(ErrorKind::Unsupported, Operation::Connect, message).into())
}

fn refuse_newer(connection: &Connection) -> Tried<()> {
    let format: i64 =
        connection
            .query_row("SELECT value FROM leasehold_meta WHERE key = 'format'", [], |row| row.get(0))?;
    if format <= FORMAT {
        return Ok(());
    }
    let message =
        format!("written by a newer Leasehold (format {format}, we know {FORMAT}); upgrade this one");
    Err(Error::new(ErrorKind::Unsupported, Operation::Connect, message).into())
}

fn stored_boot(connection: &Connection) -> Tried<String> {
    Ok(connection.query_row("SELECT value FROM leasehold_meta WHERE key = 'boot'", [], |row| row.get(0))?)
}

fn begin_boot(connection: &Connection, boot: &Boot) -> Tried<()> {
    let newest = connection.query_row("SELECT max(fence) FROM leasehold_record", [], |row| row.get(0))?;
    let newest: Option<i64> = newest;
    let floor = rows::floor(connection)?.max(newest.map_or(0, rows::unsigned)) + LEAP;
    rows::raise_floor(connection, floor)?;
    let latches = latches(connection)?;
    connection.execute("DELETE FROM leasehold_record", [])?;
    for (name, count) in latches {
        rows::save(connection, &name, &Written::new(armed(floor, count)))?;
    }
    let now = rows::signed(clock::now().0)?;
    connection.execute("UPDATE leasehold_cell SET until = ?1 + ttl WHERE ttl IS NOT NULL", [now])?;
    connection.execute("DELETE FROM leasehold_meta WHERE key = 'tended'", [])?;
    connection.execute("UPDATE leasehold_meta SET value = ?1 WHERE key = 'boot'", [boot.as_str()])?;
    Ok(())
}

fn latches(connection: &Connection) -> Tried<Vec<(String, u64)>> {
    let mut statement = connection
        .prepare("SELECT name, record FROM leasehold_record WHERE record IS NOT NULL ORDER BY name")?;
    let mut rows = statement.query([])?;
    let mut latches = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let record = Record::decode(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)
            .map_err(|error| error.about(&name))?;
        if let Some(Kind::Latch { count }) = record.kind() {
            latches.push((name, count));
        }
    }
    Ok(latches)
}

fn armed(floor: u64, count: u64) -> Record {
    let mut record = Record::new(floor);
    let around = Surroundings { now: Moment(0), session: None, crowd: 0, alive: &|_| true };
    let _armed = record.apply(&Step::Latch(LatchStep::Arm { count }), &around);
    record
}
