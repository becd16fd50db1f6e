//! Connections to the file, transactions on them, and patience with other processes.
//!
//! A [`Lane`] is one connection behind a mutex. SQLite itself never waits here: a busy database is answered at once
//! and tried again after a short pause of the task, so that no thread sleeps, nobody waits behind a sleeper, and a
//! hundred processes are not kept apart by the tenth of a second that SQLite's own handler would sleep.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    time::{Clock, Instant},
};
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::{
    error::{Failure, Tried, closed, commit_failed, from_io},
    filesystem::Place,
    log,
};

/// What a committed transaction outlives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Every crash of ours, but not one of the machine: no commit waits for the disk.
    Boot,
    /// A crash of the machine too: each commit is on the disk before it is answered.
    Disk,
}

/// One connection, opened when it is first needed.
#[derive(Debug)]
pub(super) struct Lane {
    place: Arc<Place>,
    durability: Durability,
    growth: Growth,
    state: Mutex<State>,
}

/// Whether a connection may make the database larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    Free,
    /// It uses the pages there are; see `log`.
    Confined,
}

#[derive(Debug)]
enum State {
    Idle,
    Open(Connection),
    Closed,
}

impl Lane {
    /// One that may make the database larger.
    pub(super) fn new(place: Arc<Place>, durability: Durability) -> Self {
        Self { place, durability, growth: Growth::Free, state: Mutex::new(State::Idle) }
    }

    /// One that uses the pages there are.
    pub(super) fn confined(place: Arc<Place>, durability: Durability) -> Self {
        Self { growth: Growth::Confined, ..Self::new(place, durability) }
    }

    /// Does some work on the connection, which is all ours meanwhile.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Connection) -> Tried<T>) -> Tried<T> {
        let mut state = self.state();
        if matches!(*state, State::Idle) {
            let connection = connect(&self.place, self.durability)?;
            if self.growth == Growth::Confined {
                log::confine(&connection)?;
            }
            *state = State::Open(connection);
        }
        match &*state {
            State::Open(connection) => work(connection),
            State::Idle | State::Closed => Err(closed().into()),
        }
    }

    /// Like [`with`](Self::with), on a thread that may wait for the disk, and again while others are in the way.
    pub(super) async fn patiently<T: Send + 'static>(
        self: &Arc<Self>,
        mut patience: Patience,
        work: impl Fn(&Connection) -> Tried<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let work = Arc::new(work);
        loop {
            let (lane, work) = (self.clone(), work.clone());
            match tokio::task::spawn_blocking(move || lane.with(|connection| work(connection))).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(Failure::Final(error))) => return Err(error),
                Ok(Err(Failure::Busy)) => patience.pause().await?,
                Err(error) => {
                    let message = "the runtime ended before the database answered";
                    return Err(
                        Error::new(ErrorKind::Indeterminate, Operation::Inspect, message).because(error)
                    );
                }
            }
        }
    }

    /// Closes the connection for good.
    pub(super) fn close(&self) {
        *self.state() = State::Closed;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in the middle of a transaction rolled it back while unwinding: the connection is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(place: &Place, durability: Durability) -> Tried<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(place.file(), flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.pragma_update(None, "trusted_schema", false)?;
    let synchronous = match durability {
        Durability::Boot => "NORMAL",
        Durability::Disk => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        let message =
            format!("this file system offers no shared memory for SQLite's log (it chose {mode:?})");
        return Err(Error::new(ErrorKind::Unsupported, Operation::Connect, message).into());
    }
    // Upkeep moves the log into the database, never a lock's own transaction, nor the end of a short-lived process:
    // both would wait for the disk.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update_and_check(None, "journal_size_limit", log::LIMIT, |_| Ok(()))?;
    Ok(connection)
}

/// A transaction; rolled back unless committed.
#[derive(Debug)]
pub(super) struct Transaction<'c> {
    connection: &'c Connection,
    committed: bool,
}

impl<'c> Transaction<'c> {
    /// One that may write. Taking the write lock at the start means that nothing read in it can be out of date.
    pub(super) fn write(connection: &'c Connection) -> Tried<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection, committed: false })
    }

    /// One that only reads, all of it as of one moment; it is in nobody's way.
    pub(super) fn read(connection: &'c Connection) -> Tried<Self> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self { connection, committed: false })
    }

    pub(super) fn commit(mut self) -> Tried<()> {
        self.connection.prepare_cached("COMMIT")?.execute([]).map_err(commit_failed)?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Some errors roll back by themselves.
        if self.committed || self.connection.is_autocommit() {
            return;
        }
        let rolled_back =
            self.connection.prepare_cached("ROLLBACK").and_then(|mut rollback| rollback.execute([]));
        if let Err(error) = rolled_back {
            tracing::warn!(%error, "a transaction could not be rolled back");
        }
    }
}

/// How long one operation puts up with a busy database.
#[derive(Debug)]
pub(super) struct Patience {
    busy_timeout: Duration,
    until: Instant,
    pauses: u32,
}

impl Patience {
    /// Pauses that only let other tasks run: a transaction of another process is over before a timer could ring.
    const YIELDS: u32 = 8;
    /// The longest pause.
    const LONGEST: Duration = Duration::from_millis(20);

    pub(super) fn new(busy_timeout: Duration) -> Self {
        Self { busy_timeout, until: Clock::boot().now().after(busy_timeout), pauses: 0 }
    }

    /// Waits a little, longer each time and never as long as the next process does; or gives up.
    pub(super) async fn pause(&mut self) -> Result<()> {
        let clock = Clock::boot();
        if clock.now() >= self.until {
            let message = format!("other processes kept the database locked for {:?}", self.busy_timeout);
            return Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, message));
        }
        self.pauses += 1;
        match self.pauses.checked_sub(Self::YIELDS) {
            None | Some(0) => tokio::task::yield_now().await,
            Some(long) => {
                clock.pause(somewhat_less(Self::LONGEST.min(Duration::from_millis(long.into())))).await;
            }
        }
        Ok(())
    }
}

/// Between a tenth and all of it.
fn somewhat_less(duration: Duration) -> Duration {
    let tenths = getrandom::u32().map_or(5, |random| random % 10 + 1);
    duration * tenths / 10
}

/// Runs file work where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(from_io(error.into(), "the runtime ended before the file could be used")),
    }
}
