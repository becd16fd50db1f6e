//! Upkeep: what keeps the file small, in the background, a bounded piece at a time.
//!
//! - The log is moved into the database once it has grown, so that no lock's own transaction waits for the disk.
//! - Rows nobody uses any more are removed, and the floor raised above their fences in the same transaction.
//! - Files of dead sessions that no record mentions are removed.
//!
//! It runs when a store that writes much has written enough, and when a store is opened and finds the file grown,
//! which is how a file used only by short-lived processes is kept small. Failing is no harm: the next will do it.
//! None of it has to be on the disk: a machine that forgets it has the rows again, and does it again.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    ClientId, Result,
    backend::record::{Moment, Record},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    clock,
    connection::{Durability, Lane, Transaction},
    error::{Failure, Tried, from_io},
    ledger::Ledger,
    rows,
    session::Folder,
};

/// After how many writes of ours it is time again.
const EVERY: u64 = 4096;

/// How large a log may be found at opening, in bytes: who opens a store that nobody else has open reads all of it.
const LARGE: u64 = 1 << 20;

/// How often the log is moved while others go on writing to it, and how many pages are little enough to stop them for.
const PASSES: usize = 4;
const LITTLE: i64 = 256;

/// How long the upkeep waits for others to leave the log, and at worst keeps them from writing.
const WAIT: Duration = Duration::from_millis(20);

/// How many rows are too few to bother.
const FEW: u32 = 2048;

/// How many rows are looked at in one transaction.
const STRETCH: u32 = 256;

/// How many stretches are looked at each time at least; and at most, for as long as half of each can be removed.
const STRETCHES: std::ops::RangeInclusive<u32> = 8..=256;

/// How many files of sessions are looked at.
const SESSIONS: usize = 4096;

/// How many rows are looked at before a dead session's file is removed right away. With more it is left to the
/// upkeep, which so large a file gets whenever it is opened.
pub(super) const MENTIONS: u32 = 4096;

/// How long nobody needs to look again after somebody did, in microseconds.
const REST: u64 = 1_000_000;

/// Does the upkeep of one open store.
#[derive(Debug)]
pub(super) struct Upkeep {
    lane: Lane,
    folder: Arc<Folder>,
    log: PathBuf,
    writes: AtomicU64,
    running: AtomicBool,
}

/// How the log is begun anew.
#[derive(Clone, Copy, Debug)]
enum Log {
    /// Written over from its start: cheaper than to let it grow again.
    Reuse,
    /// Cut to nothing.
    Cut,
}

impl Upkeep {
    pub(super) fn new(ledger: &Ledger) -> Arc<Self> {
        let (place, folder) = (ledger.place.clone(), ledger.folder.clone());
        let (log, lane) = (place.beside("-wal"), Lane::new(place, Durability::Boot));
        Arc::new(Self { lane, folder, log, writes: AtomicU64::new(0), running: AtomicBool::new(false) })
    }

    /// Counts a write of ours, and does the upkeep when it is time.
    pub(super) fn wrote(self: &Arc<Self>) {
        if self.writes.fetch_add(1, Ordering::Relaxed) % EVERY == EVERY - 1 {
            self.start(Log::Reuse);
        }
    }

    /// Does the upkeep if the file, just opened by this connection, has grown and nobody looks after it.
    pub(super) fn opened(self: &Arc<Self>, connection: &Connection) -> Tried<()> {
        let large = fs::metadata(&self.log).is_ok_and(|log| log.len() > LARGE);
        if (large || is_crowded(connection)?) && !was_tended_lately(connection)? {
            self.start(Log::Cut);
        }
        Ok(())
    }

    /// Stops all upkeep for good.
    pub(super) fn close(&self) {
        self.lane.close();
    }

    fn start(self: &Arc<Self>, log: Log) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.running.swap(true, Ordering::SeqCst) {
            return;
        }
        let upkeep = self.clone();
        runtime.spawn_blocking(move || {
            if let Err(error) = upkeep.run(log) {
                tracing::debug!(%error, "upkeep of the database was left to the next");
            }
            upkeep.running.store(false, Ordering::SeqCst);
        });
    }

    /// All of it, once. Gives way to whoever is busy with the file.
    fn run(&self, log: Log) -> Result<()> {
        let tended = self.lane.with(|connection| {
            move_log(connection, log)?;
            if is_crowded(connection)? { sweep(connection) } else { Ok(()) }
        });
        let over = self.folder.unlocked(SESSIONS);
        let over = over.map_err(|error| from_io(error, "cannot read the folder of sessions"))?;
        let buried = self.lane.with(|connection| retire(connection, &self.folder, over, u32::MAX));
        match tended.and(buried) {
            Ok(()) | Err(Failure::Busy) => Ok(()),
            Err(Failure::Final(error)) => Err(error),
        }
    }
}

/// Removes the files of sessions that are over, but for those that records mention or may mention: with more than
/// `most` rows to look at, that is all.
pub(super) fn retire(connection: &Connection, folder: &Folder, over: Vec<ClientId>, most: u32) -> Tried<()> {
    rows::unmentioned(connection, over, most)?.into_iter().for_each(|session| folder.bury(session));
    Ok(())
}

/// Whether there are so many rows that a look at them is due.
fn is_crowded(connection: &Connection) -> Tried<bool> {
    let many = "SELECT 1 FROM leasehold_record LIMIT 1 OFFSET ?1";
    Ok(connection.query_row(many, [FEW], |_| Ok(())).optional()?.is_some())
}

fn was_tended_lately(connection: &Connection) -> Tried<bool> {
    let tended =
        connection.query_row("SELECT value FROM leasehold_meta WHERE key = 'tended'", [], |row| row.get(0));
    let tended = tended.optional()?.map_or(0, rows::unsigned);
    Ok(clock::now().0.saturating_sub(tended) < REST)
}

/// Moves the log into the database and begins it anew. The first passes, which do nearly all, are in nobody's way;
/// the last one is, so they are repeated until little is left for it. The first write to the new log waits for the
/// disk too, so it is ours rather than a lock's.
fn move_log(connection: &Connection, log: Log) -> Tried<()> {
    let mut moved = 0;
    for _ in 0..PASSES {
        let frames: i64 = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))?;
        let added = frames - std::mem::replace(&mut moved, frames);
        if added < LITTLE {
            break;
        }
    }
    let anew = match log {
        Log::Reuse => "PRAGMA wal_checkpoint(RESTART)",
        Log::Cut => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    connection.busy_timeout(WAIT)?;
    connection.query_row(anew, [], |_| Ok(()))?;
    let transaction = Transaction::write(connection)?;
    let keep = "INSERT INTO leasehold_meta VALUES ('tended', ?1)
                ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.execute(keep, [rows::signed(clock::now().0)?])?;
    transaction.commit()
}

/// Removes rows that nobody uses, a stretch at a time, each where the last one ended.
fn sweep(connection: &Connection) -> Tried<()> {
    for number in 1..=*STRETCHES.end() {
        let removed = sweep_stretch(connection)?;
        if number >= *STRETCHES.start() && removed < STRETCH as usize / 2 {
            break;
        }
    }
    Ok(())
}

fn sweep_stretch(connection: &Connection) -> Tried<usize> {
    let transaction = Transaction::write(connection)?;
    let cursor = "SELECT value FROM leasehold_meta WHERE key = 'sweep_cursor'";
    let cursor: Option<String> = connection.query_row(cursor, [], |row| row.get(0)).optional()?;
    let (seen, unused) = unused(connection, cursor.as_deref().unwrap_or_default(), clock::now())?;
    rows::raise_floor(connection, unused.iter().map(|(_, fence)| *fence).max().unwrap_or(0))?;
    for (name, _) in &unused {
        rows::remove(connection, name)?;
    }
    let keep = "INSERT INTO leasehold_meta VALUES ('sweep_cursor', ?1)
                ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.execute(keep, [seen.unwrap_or_default()])?;
    transaction.commit()?;
    Ok(unused.len())
}

/// Among the next rows after the cursor, those nobody uses, with their fences; and where to go on, if not at the start.
#[expect(clippy::type_complexity, reason = "a name for each pair would say no more")]
fn unused(connection: &Connection, cursor: &str, now: Moment) -> Tried<(Option<String>, Vec<(String, u64)>)> {
    let mut statement = connection.prepare_cached(
        "SELECT name, fence, record FROM leasehold_record WHERE name > ?1 ORDER BY name LIMIT ?2",
    )?;
    let mut rows = statement.query(params![cursor, STRETCH])?;
    let (mut unused, mut last, mut seen) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let record = row.get_ref(2)?.as_str_or_null().map_err(rusqlite::Error::from)?.map(Record::decode);
        let vacant = match record {
            None => true,
            Some(Ok(mut record)) => record.expire(now) && record.is_vacant(),
            // A newer version's. It knows what to do with it.
            Some(Err(_)) => false,
        };
        if vacant {
            unused.push((name.clone(), rows::unsigned(row.get(1)?)));
        }
        (last, seen) = (Some(name), seen + 1);
    }
    Ok((last.filter(|_| seen == STRETCH), unused))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use leasehold_core::{
        Key,
        backend::{Backend, Recorded},
    };

    use super::{
        super::{
            Sqlite,
            fixture::{LONG, open, pass, spec, win},
        },
        *,
    };

    fn rows(store: &Recorded<Sqlite>) -> i64 {
        let count = "SELECT count(*) FROM leasehold_record";
        store
            .store()
            .upkeep
            .lane
            .with(|connection| Ok(connection.query_row(count, [], |row| row.get(0))?))
            .unwrap()
    }

    #[tokio::test]
    async fn names_nobody_uses_any_more_leave_no_rows_and_their_fences_still_grow() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let held = win(&store, &spec("held", LONG)).await;
        let mut fences = HashMap::new();
        for number in 0..FEW + 500 {
            // Some are released, some expire, and one is passed so often that its fence is the greatest.
            let name = if number % 5 == 0 { "often".to_owned() } else { format!("name {number}") };
            let fence = match number % 5 {
                1 => win(&store, &spec(&name, Duration::ZERO)).await.fence,
                _ => pass(&store, &name).await,
            };
            fences.insert(name, fence);
        }
        for _ in 0..8 {
            store.store().upkeep.run(Log::Cut).unwrap();
        }
        assert!(rows(&store) <= FEW.into(), "{} rows", rows(&store));
        for (name, before) in fences {
            let after = pass(&store, &name).await;
            assert!(after > before, "{name}: {after} after {before}");
        }
        let state = store.inspect(&Key::new("", "held").unwrap()).await.unwrap().unwrap();
        assert_eq!(state.holders[0].fence, held.fence);
    }

    #[tokio::test]
    async fn the_log_is_cut_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let before = pass(&store, "x").await;
        store.store().upkeep.run(Log::Cut).unwrap();
        let log = fs::metadata(folder.path().join("locks.db-wal")).unwrap().len();
        assert!(log < 32 * 1024, "{log} bytes");
        drop(store);
        assert!(pass(&open(&folder).await, "x").await > before);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_of_dead_sessions_are_removed_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        pass(&store, "x").await;
        let sessions = folder.path().join("locks.db-sessions");
        let dead = sessions.join(ClientId::random().to_string());
        let foreign = sessions.join("notes.txt");
        for file in [&dead, &foreign] {
            fs::write(file, "").unwrap();
        }
        store.store().upkeep.run(Log::Reuse).unwrap();
        assert!(!dead.exists());
        assert!(foreign.exists());
        assert_eq!(fs::read_dir(&sessions).unwrap().count(), 2, "our own session has its file still");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_file_of_a_dead_session_stays_while_a_record_mentions_it() {
        let folder = tempfile::tempdir().unwrap();
        let (dead, store) = (open(&folder).await, open(&folder).await);
        win(&dead, &spec("x", LONG)).await;
        drop(dead);
        let files = || fs::read_dir(folder.path().join("locks.db-sessions")).unwrap().count();
        store.store().upkeep.run(Log::Reuse).unwrap();
        assert_eq!(files(), 1, "the proof that x is free");
        pass(&store, "x").await;
        assert_eq!(files(), 1, "ours; the other is needed no more");
    }
}
