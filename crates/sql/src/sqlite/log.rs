//! The log: how long it may get, how it is moved into the database, and the room kept for a full disk.
//!
//! On a full disk a lock must still be released. A log written over from its start needs no room on the disk, so it is
//! begun anew rather than cut; but that takes moving it, and a page can be moved only to where the database has one
//! already. So the database grows by free pages that are on the disk before anybody uses them, and the connections
//! that locks use are confined to those. What is kept this way nobody else can take, as they could the room of a file
//! that is removed in need.
//!
//! A process stopped in the middle of a look at the database keeps the log from being begun anew. It grows until that
//! process goes on or is killed.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::{
    clock,
    connection::Transaction,
    error::{Failure, Tried},
    rows,
};

/// How many pages of log are enough to move it while the store is in use. SQLite's index of twice as many needs no
/// more of its shared memory than it has from the start.
pub(super) const LONG: i64 = 2048;

/// How many are too many to be found at opening: who opens a store that nobody else has open reads all of them.
pub(super) const LARGE: i64 = 256;

/// How large a log that is begun anew may stay, in bytes. More than it has by then, unless something was in the way.
pub(super) const LIMIT: i64 = 12 << 20;

/// How often the log is moved while others go on writing to it, and how many pages are little enough to stop them for.
const PASSES: usize = 4;
const LITTLE: i64 = 256;

/// How long we wait for others to leave the log, and at worst keep them from writing.
const WAIT: Duration = Duration::from_millis(20);

/// How many free pages the database is given when it has few: more than names use between two looks.
const ROOM: i64 = 256;

/// How much room the disk must have, in bytes, before the database takes pages.
#[cfg(unix)]
const SPARE: u64 = 4 << 20;

/// How long nobody needs to look again after somebody did, in microseconds.
const REST: u64 = 1_000_000;

/// How many pages there are in the log.
pub(super) fn length(connection: &Connection) -> Tried<i64> {
    Ok(connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get(1))?)
}

/// Moves the log into the database and begins it anew; busy if others did not let us. The first passes, which do
/// nearly all, are in nobody's way; the last one is, so they are repeated until little is left for it. The first write
/// to the new log waits for the disk too, so it is ours rather than a lock's.
pub(super) fn begin_anew(connection: &Connection) -> Tried<()> {
    let mut moved = 0;
    for _ in 0..PASSES {
        let frames: i64 = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))?;
        let added = frames - std::mem::replace(&mut moved, frames);
        if added < LITTLE {
            break;
        }
    }
    connection.busy_timeout(WAIT)?;
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?;
    let noted = note_tended(connection);
    if busy { Err(Failure::Busy) } else { noted }
}

fn note_tended(connection: &Connection) -> Tried<()> {
    let transaction = Transaction::write(connection)?;
    let keep = "INSERT INTO leasehold_meta VALUES ('tended', ?1)
                ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.execute(keep, [rows::signed(clock::now().0)?])?;
    transaction.commit()
}

/// Whether somebody began the log anew, or tried to, a moment ago.
pub(super) fn was_tended_lately(connection: &Connection) -> Tried<bool> {
    let tended =
        connection.query_row("SELECT value FROM leasehold_meta WHERE key = 'tended'", [], |row| row.get(0));
    let tended = tended.optional()?.map_or(0, rows::unsigned);
    Ok(clock::now().0.saturating_sub(tended) < REST)
}

/// Moves the log, and gives the database free pages if it has few and the disk has room: what a write needs that found
/// none.
pub(super) fn make_room(connection: &Connection) -> Tried<()> {
    begin_anew(connection)?;
    // New pages are on the disk only once the log is moved.
    if has_few_pages(connection)? && has_room(connection) {
        add_pages(connection)?;
        begin_anew(connection)?;
    }
    Ok(())
}

/// Confines a connection to the pages the database has now.
pub(super) fn confine(connection: &Connection) -> Tried<()> {
    if !gives_pages_back(connection)? {
        // SQLite makes it as many as there are.
        connection.pragma_update_and_check(None, "max_page_count", 1, |_| Ok(()))?;
    }
    Ok(())
}

/// Whether the database, as its owner has set it up, keeps no free pages.
fn gives_pages_back(connection: &Connection) -> Tried<bool> {
    Ok(number(connection, "auto_vacuum")? != 0)
}

fn has_few_pages(connection: &Connection) -> Tried<bool> {
    Ok(!gives_pages_back(connection)? && number(connection, "freelist_count")? < ROOM / 2)
}

/// Adds free pages. They are written once, in a transaction of their own, because a page that is freed where it was
/// made never gets its place on the disk.
fn add_pages(connection: &Connection) -> Tried<()> {
    let size = number(connection, "page_size")? * ROOM;
    let take = "INSERT INTO leasehold_meta VALUES ('room', zeroblob(?1))
                ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    let transaction = Transaction::write(connection)?;
    connection.execute(take, [size])?;
    transaction.commit()?;
    let transaction = Transaction::write(connection)?;
    connection.execute("DELETE FROM leasehold_meta WHERE key = 'room'", [])?;
    transaction.commit()
}

/// Whether the disk has room for new pages, and for them in the log, with some to spare: pages that are in the log and
/// find no place in the database would keep the log from being moved.
fn has_room(connection: &Connection) -> bool {
    #[cfg(unix)]
    if let Some(Ok(disk)) = connection.path().map(rustix::fs::statvfs) {
        return disk.f_bavail.saturating_mul(disk.f_frsize) >= SPARE;
    }
    let _ = connection;
    true
}

fn number(connection: &Connection, pragma: &str) -> Tried<i64> {
    Ok(connection.pragma_query_value(None, pragma, |row| row.get(0))?)
}
