//! Upkeep: what keeps the file small, in the background, a bounded piece at a time.
//!
//! - The log is moved into the database once it has grown, so that no lock's own transaction waits for the disk; and
//!   at once when a write found no room on the disk, see `log`.
//! - Rows nobody uses any more are removed, and the floor raised above their fences in the same transaction.
//! - Files of dead sessions that no record mentions are removed.
//!
//! It runs when a store that writes much has written enough, and when a store is opened and finds the file grown,
//! which is how a file used only by short-lived processes is kept small. Failing is no harm: the next will do it.
//! None of it has to be on the disk: a machine that forgets it has the rows again, and does it again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    ClientId, Result,
    backend::record::{Moment, Record},
    time::{Clock, Instant},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    clock,
    connection::{Durability, Lane, Transaction},
    error::{Failure, Tried, from_io},
    ledger::Ledger,
    log, rows,
    session::Folder,
};

/// After how many writes of ours it is time again.
const EVERY: u64 = 4096;

/// After how many we look how long the log is: others write to it too.
const LOOK: u64 = 64;

/// How soon after room could not be made it is tried again.
const REST: Duration = Duration::from_millis(100);

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

/// Does the upkeep of one open store.
#[derive(Debug)]
pub(super) struct Upkeep {
    lane: Lane,
    folder: Arc<Folder>,
    writes: AtomicU64,
    running: AtomicBool,
    relief: Mutex<Option<Relief>>,
}

/// How the last try ended to make room on a full disk.
#[derive(Clone, Copy, Debug)]
struct Relief {
    at: Instant,
    made: bool,
}

impl Upkeep {
    pub(super) fn new(ledger: &Ledger) -> Arc<Self> {
        let lane = Lane::new(ledger.place.clone(), Durability::Boot);
        Arc::new(Self {
            lane,
            folder: ledger.folder.clone(),
            writes: AtomicU64::new(0),
            running: AtomicBool::new(false),
            relief: Mutex::default(),
        })
    }

    /// Counts a write of ours on this connection, and does the upkeep when it is time.
    pub(super) fn wrote(self: &Arc<Self>, lane: &Lane) {
        let writes = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let is_long = || lane.with(log::length).is_ok_and(|length| length >= log::LONG);
        if writes.is_multiple_of(EVERY) || (writes.is_multiple_of(LOOK) && is_long()) {
            self.start();
        }
    }

    /// Does the upkeep if the file, just opened by this connection, has grown and nobody looks after it.
    pub(super) fn opened(self: &Arc<Self>, connection: &Connection) -> Tried<()> {
        let large = log::length(connection)? > log::LARGE;
        if (large || is_crowded(connection)?) && !log::was_tended_lately(connection)? {
            self.start();
        }
        Ok(())
    }

    /// Gives a file that was just made ready the room it needs on a full disk. Without it, it works as well until then.
    pub(super) fn furnish(&self) {
        if let Err(Failure::Final(error)) = self.lane.with(log::make_room) {
            tracing::debug!(%error, "no room could be kept for a full disk");
        }
    }

    /// Makes room because a write found none: in the log, and in the database if the disk has it. Says whether another try is worth it.
    pub(super) async fn make_room(self: &Arc<Self>) -> bool {
        let (upkeep, asked) = (self.clone(), Clock::boot().now());
        tokio::task::spawn_blocking(move || upkeep.relieve(asked)).await.unwrap_or(false)
    }

    /// One at a time in this process; among processes SQLite sees to it, and who is second finds it busy.
    fn relieve(&self, asked: Instant) -> bool {
        // Whole values only: a panic leaves the last one.
        let mut relief = self.relief.lock().unwrap_or_else(PoisonError::into_inner);
        match *relief {
            Some(Relief { at, made: true }) if at >= asked => return true,
            Some(Relief { at, made: false }) if Clock::boot().now() < at.after(REST) => return false,
            _ => {}
        }
        let made = match self.lane.with(log::make_room) {
            Ok(()) | Err(Failure::Busy) => true,
            Err(Failure::Final(error)) => {
                tracing::debug!(%error, "no room could be made in the log");
                false
            }
        };
        *relief = Some(Relief { at: Clock::boot().now(), made });
        made
    }

    /// Stops all upkeep for good.
    pub(super) fn close(&self) {
        self.lane.close();
    }

    fn start(self: &Arc<Self>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.running.swap(true, Ordering::SeqCst) {
            return;
        }
        let upkeep = self.clone();
        runtime.spawn_blocking(move || {
            if let Err(error) = upkeep.run() {
                tracing::debug!(%error, "upkeep of the database was left to the next");
            }
            upkeep.running.store(false, Ordering::SeqCst);
        });
    }

    /// All of it, once. Gives way to whoever is busy with the file.
    fn run(&self) -> Result<()> {
        let moved = self.lane.with(log::make_room);
        let tended =
            self.lane.with(|connection| if is_crowded(connection)? { sweep(connection) } else { Ok(()) });
        let over = self.folder.unlocked(SESSIONS);
        let over = over.map_err(|error| from_io(error, "cannot read the folder of sessions"))?;
        let buried = self.lane.with(|connection| retire(connection, &self.folder, over, u32::MAX));
        match moved.and(tended).and(buried) {
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
    use std::fs;

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
            store.store().upkeep.run().unwrap();
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
    async fn the_log_is_begun_anew_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let before = pass(&store, "x").await;
        for _ in 0..50 {
            pass(&store, "y").await;
        }
        let length = || store.store().upkeep.lane.with(log::length).unwrap();
        assert!(length() > 50, "{} pages", length());
        store.store().upkeep.run().unwrap();
        assert!(length() < 8, "{} pages", length());
        drop(store);
        assert!(pass(&open(&folder).await, "x").await > before);
    }

    #[tokio::test]
    async fn a_log_that_grew_too_large_is_cut_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let file = folder.path().join("locks.db-wal");
        fs::File::options().write(true).open(&file).unwrap().set_len(30 << 20).unwrap();
        store.store().upkeep.run().unwrap();
        let size = fs::metadata(&file).unwrap().len();
        assert!(size <= log::LIMIT.unsigned_abs(), "{size} bytes");
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
        store.store().upkeep.run().unwrap();
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
        store.store().upkeep.run().unwrap();
        assert_eq!(files(), 1, "the proof that x is free");
        pass(&store, "x").await;
        assert_eq!(files(), 1, "ours; the other is needed no more");
    }
}
