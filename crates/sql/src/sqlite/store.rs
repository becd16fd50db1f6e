//! The store: which connection does what, and what happens around a transaction.
//!
//! A step takes some twenty microseconds when nobody is in the way, less than handing it to another thread and back,
//! so it is taken right where it is asked for. What waits for the disk or reads much (cells, latches, listings,
//! upkeep) has a connection of its own, the desk, and a thread that may block.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Attempt, Cell, CellPage, CellWrite, Expect, Finding, Life, LockPage, LockState, RecordStore,
        Recorded, StoreInfo,
        record::{Answer, Step},
    },
};

use super::{
    SqliteConfig, admin,
    bell::{Bells, SqliteBell},
    cells, clock,
    connection::{Durability, Lane, Patience, blocking},
    error::{Failure, closed, lacks_room},
    ledger::{Ledger, Taken, operation, outlives_boots},
    log,
    open::{describe, prepare},
    session::{RollCall, Session},
    upkeep::{self, Upkeep},
};

/// How many steps one transaction takes, so that a large batch keeps neither the database nor the runtime's thread.
const BATCH: usize = 64;

/// How many names are remembered as contended.
const CROWDED: usize = 1024;

/// How often room is made on a full disk for one request: others may take it before us.
const ROOMS: usize = 2;

/// Locks in a SQLite file, for all processes of one machine.
pub struct Sqlite {
    info: StoreInfo,
    busy_timeout: Duration,
    pub(super) locks: Arc<Lane>,
    pub(super) desk: Arc<Lane>,
    pub(super) ledger: Arc<Ledger>,
    own: Mutex<Own>,
    bells: Bells,
    /// Names that were busy when we last asked: worth a glance before taking the write lock.
    crowded: Mutex<HashSet<Arc<str>>>,
    pub(super) upkeep: Arc<Upkeep>,
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.info.address;
        f.debug_struct("Sqlite")
            .field("address", address)
            .field("session", &self.session_id())
            .finish_non_exhaustive()
    }
}

/// Our own session. A store that only looks never begins one.
#[derive(Debug)]
enum Own {
    NotYet,
    Begun(Session),
    Ended,
}

impl Sqlite {
    /// Opens a store, making the file and its folder if they are missing.
    ///
    /// # Errors
    /// `Config` for a path that is none, `Denied` for a symbolic link or a file of another user, `Unsupported` for a
    /// network file system or a file of a newer version, `Internal` for a file that is no database, `Unavailable` if
    /// the disk or other processes do not let us.
    ///
    /// # Cancel safety
    /// Dropped half-way it may leave an empty store behind, which does no harm.
    pub async fn open(config: SqliteConfig) -> Result<Recorded<Self>> {
        let busy_timeout = config.busy_timeout();
        let (boot, ledger) = blocking(move || prepare(&config)).await?;
        let durability = if boot.is_known() { Durability::Boot } else { Durability::Disk };
        let locks = Arc::new(Lane::confined(ledger.place.clone(), durability));
        let desk = Arc::new(Lane::confined(ledger.place.clone(), Durability::Disk));
        let upkeep = Upkeep::new(&ledger);
        let info = describe(&boot, &ledger.place);
        let boot = Arc::new(boot);
        let store = Self {
            info,
            busy_timeout,
            locks,
            desk,
            ledger,
            own: Mutex::new(Own::NotYet),
            bells: Bells::default(),
            crowded: Mutex::default(),
            upkeep,
        };
        store
            .make_ready(boot)
            .await
            .map_err(|error| error.during(Operation::Connect).about(&store.info.address))?;
        Ok(Recorded::new(store))
    }

    /// Takes steps in one transaction and tells those concerned.
    async fn take(&self, steps: Vec<(Key, Step)>) -> Result<Vec<Result<Answer>>> {
        let own = self.session_for(&steps)?;
        for _ in 0..ROOMS {
            match self.try_taking(own, &steps).await {
                Err(error) if self.made_room_for(&error).await => {}
                taken => return taken.map(|taken| self.settle(taken)),
            }
        }
        self.try_taking(own, &steps).await.map(|taken| self.settle(taken))
    }

    async fn try_taking(&self, own: Option<ClientId>, steps: &[(Key, Step)]) -> Result<Taken> {
        if !steps.iter().any(|(_, step)| outlives_boots(step)) {
            return self.take_here(own, steps).await;
        }
        let (ledger, steps) = (self.ledger.clone(), steps.to_vec());
        let work = move |connection: &_| ledger.take(connection, own, &steps);
        self.desk.patiently(self.patience(), work).await
    }

    /// Makes room if it was missing. Says whether what failed took no effect and is worth another try.
    async fn made_room_for(&self, error: &Error) -> bool {
        if !lacks_room(error) || !self.upkeep.make_room().await {
            return false;
        }
        // A connection that cannot learn of new pages now fails again, and then learns of them.
        let _ = self.learn_of_pages().await;
        error.kind() == ErrorKind::Unavailable
    }

    pub(super) async fn learn_of_pages(&self) -> Result<()> {
        self.locks.patiently(self.patience(), log::confine).await?;
        self.desk.patiently(self.patience(), log::confine).await
    }

    /// Takes steps on this very thread.
    async fn take_here(&self, own: Option<ClientId>, steps: &[(Key, Step)]) -> Result<Taken> {
        let glances = steps.len() == 1 && self.is_doubtful(&steps[0]);
        let mut patience = self.patience();
        loop {
            let tried = self.locks.with(|connection| {
                if glances && let Some(answer) = self.ledger.glance(connection, own, &steps[0])? {
                    return Ok(Taken { answers: vec![Ok(answer)], ..Taken::default() });
                }
                self.ledger.take(connection, own, steps)
            });
            match tried {
                Ok(taken) => {
                    self.remember(steps, &taken);
                    return Ok(taken);
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Busy) => patience.pause().await?,
            }
        }
    }

    /// Whether a step may well be answered without a change: it stands in line already, or the name was busy before.
    fn is_doubtful(&self, (key, step): &(Key, Step)) -> bool {
        match step {
            Step::Attempt { waiting: true, .. } => true,
            Step::Attempt { .. } => self.crowded().contains(key.full()),
            _ => false,
        }
    }

    fn remember(&self, steps: &[(Key, Step)], taken: &Taken) {
        for ((key, _), answer) in steps.iter().zip(&taken.answers) {
            match answer {
                Ok(Answer::Attempt(Attempt::Busy(_))) => {
                    let mut crowded = self.crowded();
                    if crowded.len() >= CROWDED {
                        crowded.clear();
                    }
                    crowded.insert(key.shared());
                }
                Ok(Answer::Attempt(Attempt::Granted(_))) => {
                    self.crowded().remove(key.full());
                }
                _ => {}
            }
        }
    }

    /// After the commit: wakes those whose chances rose, buries the dead.
    fn settle(&self, taken: Taken) -> Vec<Result<Answer>> {
        for wakes in &taken.wakes {
            self.bells.ring(wakes);
        }
        self.retire(taken.dead);
        if taken.wrote {
            self.upkeep.wrote(&self.locks);
        }
        taken.answers
    }

    /// Removes the files of dead sessions unless they are still needed, as proof that other locks are free.
    fn retire(&self, dead: Vec<ClientId>) {
        if dead.is_empty() {
            return;
        }
        let retire = |connection: &_| upkeep::retire(connection, &self.ledger.folder, dead, upkeep::MENTIONS);
        // To fail is no harm: the upkeep will do it.
        let _ = self.locks.with(retire);
    }

    /// Ends our session, in the sense that nothing of it is left in this process.
    fn end_session(&self) {
        let ended = std::mem::replace(&mut *self.own(), Own::Ended);
        if let Own::Begun(mut session) = ended {
            session.look_after();
            let id = session.id();
            drop(session);
            self.retire(vec![id]);
        }
    }

    /// Our session, begun if one of the steps may leave an entry that should end with us.
    fn session_for(&self, steps: &[(Key, Step)]) -> Result<Option<ClientId>> {
        let enters = |step: &_| matches!(step, Step::Attempt { spec, .. } if spec.life == Life::Session);
        let mut own = self.own();
        if matches!(*own, Own::NotYet) && steps.iter().any(|(_, step)| enters(step)) {
            *own = Own::Begun(Session::begin(&self.ledger.folder)?);
        }
        match &mut *own {
            Own::Begun(session) => {
                session.look_after();
                Ok(Some(session.id()))
            }
            Own::NotYet => Ok(None),
            Own::Ended => Err(closed()),
        }
    }

    fn session_id(&self) -> Option<ClientId> {
        match &*self.own() {
            Own::Begun(session) => Some(session.id()),
            Own::NotYet | Own::Ended => None,
        }
    }

    pub(super) fn patience(&self) -> Patience {
        Patience::new(self.busy_timeout)
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        // A panic can only come between two whole values.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn crowded(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        // It is a memory of hints: any state will do.
        self.crowded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.end_session();
    }
}

impl RecordStore for Sqlite {
    type Bell = SqliteBell;

    fn info(&self) -> &StoreInfo {
        &self.info
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        let operation = operation(&step);
        let taken = self.take(vec![(key.clone(), step)]).await;
        let mut answers = taken.map_err(|error| error.during(operation).about(key.name()))?;
        answers.pop().unwrap_or_else(|| {
            Err(Error::new(ErrorKind::Internal, operation, "a step was left without answer"))
        })
    }

    async fn apply_all(&self, mut steps: Vec<(Key, Step)>) -> Vec<Result<Answer>> {
        let mut answers = Vec::with_capacity(steps.len());
        while !steps.is_empty() {
            let later = steps.split_off(steps.len().min(BATCH));
            let batch = std::mem::replace(&mut steps, later);
            let asked: Vec<_> = batch.iter().map(|(key, step)| (key.clone(), operation(step))).collect();
            match self.take(batch).await {
                Ok(batch) => answers.extend(batch),
                Err(error) => answers.extend(asked.iter().map(|(key, operation)| {
                    Err(Error::new(error.kind(), *operation, error.to_string()).about(key.name()))
                })),
            }
            tokio::task::yield_now().await;
        }
        answers
    }

    fn bell(&self, _key: &Key, id: ClaimId) -> SqliteBell {
        self.bells.arm(id, self.session_id())
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let (ledger, own, name) = (self.ledger.clone(), self.session_id(), key.shared());
        let look =
            move |connection: &_| admin::inspect(connection, &name, &RollCall::new(&ledger.folder, own));
        self.desk.patiently(self.patience(), look).await.map_err(|error| error.about(key.name()))
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let (ledger, own) = (self.ledger.clone(), self.session_id());
        let (prefix, cursor) = (prefix.to_owned(), cursor.map(ToOwned::to_owned));
        let look = move |connection: &_| {
            let roll = RollCall::new(&ledger.folder, own);
            admin::list(connection, (&prefix, cursor.as_deref(), limit), &roll)
        };
        self.desk.patiently(self.patience(), look).await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        let name = name.to_owned();
        let read = move |connection: &_| cells::read(connection, &name);
        self.desk.patiently(self.patience(), read).await.map_err(|error| error.during(Operation::Cell))
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let (name, value, place) = (name.to_owned(), value.to_owned(), self.ledger.place.clone());
        let write = move |connection: &_| {
            place.check()?;
            cells::write(connection, &name, expect, &value, ttl)
        };
        let mut written = self.desk.patiently(self.patience(), write.clone()).await;
        if let Err(error) = &written
            && self.made_room_for(error).await
        {
            written = self.desk.patiently(self.patience(), write).await;
        }
        self.upkeep.wrote(&self.locks);
        written.map_err(|error| error.during(Operation::Cell))
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let (prefix, cursor) = (prefix.to_owned(), cursor.map(ToOwned::to_owned));
        let list = move |connection: &_| cells::list(connection, &prefix, cursor.as_deref(), limit);
        self.desk.patiently(self.patience(), list).await.map_err(|error| error.during(Operation::Cell))
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        Ok(Some(clock::wall()))
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        super::doctor::examine(&self.desk, self.patience(), &self.ledger.place).await
    }

    #[cfg(unix)]
    fn session(&self) -> Option<std::os::fd::OwnedFd> {
        let mut own = self.own();
        if matches!(*own, Own::NotYet) {
            *own = Own::Begun(Session::begin(&self.ledger.folder).ok()?);
        }
        match &*own {
            Own::Begun(session) => session.copy(),
            Own::NotYet | Own::Ended => None,
        }
    }

    async fn close(&self) -> Result<()> {
        self.end_session();
        let (locks, desk, upkeep) = (self.locks.clone(), self.desk.clone(), self.upkeep.clone());
        blocking(move || {
            locks.close();
            desk.close();
            upkeep.close();
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::open, *};

    #[tokio::test]
    async fn locks_do_not_wait_for_the_disk_and_cells_do() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let synchronous = |lane: &Lane| -> i64 {
            let level = |connection: &rusqlite::Connection| {
                Ok(connection.pragma_query_value(None, "synchronous", |row| row.get(0))?)
            };
            lane.with(level).unwrap()
        };
        assert_eq!(synchronous(&store.store().locks), if cfg!(target_os = "linux") { 1 } else { 2 });
        assert_eq!(synchronous(&store.store().desk), 2);
    }
}
