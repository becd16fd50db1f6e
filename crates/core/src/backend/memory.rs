//! The store within this process: the reference for every other, and the one that tests and examples use.
//!
//! Records live in a map behind a mutex; time is the client's [`Clock`], so a test with paused time has a store
//! with paused time. Records of names that nobody uses any more linger for a while and are removed, which raises the floor
//! that new ones start from.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hashbrown::{HashMap, hash_map::EntryRef};
use tokio::sync::watch;

use super::{
    Bell, Capabilities, Cell, CellPage, CellWrite, Expect, Finding, Guarantee, Level, LockPage, LockState,
    RateAnswer, RateStep, RecordStore, Recorded, StoreInfo,
    limiter::Limiter,
    record::{Answer, Moment, Record, Step, Surroundings, Wake},
};
use crate::{
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    sync::{Mutex, MutexGuard},
    time::Clock,
};

/// Locks within one process.
#[derive(Debug)]
pub struct Memory {
    info: StoreInfo,
    clock: Clock,
    shelves: Mutex<Shelves>,
}

/// How many there have been in this process.
static STORES: AtomicU64 = AtomicU64::new(1);

/// So many names keep their records though nobody uses them: most will be used again at once, or never.
const LINGERING: usize = 64;

/// Less than this is not worth a look through all of it.
const LEAST_SWEPT: usize = 2048;

/// All that the store keeps.
#[derive(Debug, Default)]
struct Shelves {
    records: HashMap<Arc<str>, Kept>,
    /// Names that nobody used any more when they came in here; the oldest first.
    lingering: VecDeque<Arc<str>>,
    /// The one removed last, for the room that it has.
    spare: Option<Record>,
    bells: HashMap<ClaimId, watch::Sender<()>>,
    cells: BTreeMap<String, (Cell, Option<Moment>)>,
    limiters: HashMap<Arc<str>, Limiter>,
    /// No record may start below this: the newest fence of any record removed.
    floor: u64,
    cell_version: u64,
    /// The time of the last step that asked for it.
    seen: Moment,
    /// How much there may be before it is swept.
    sweep_at: usize,
}

#[derive(Debug)]
struct Kept {
    record: Record,
    /// It is among those that linger.
    lingers: bool,
}

impl Memory {
    /// An empty store. Clients that should meet share it by cloning the backend.
    pub fn new() -> Recorded<Self> {
        Self::with_clock(Clock::boot())
    }

    /// An empty store on another clock, for tests.
    pub fn with_clock(clock: Clock) -> Recorded<Self> {
        let guarantee = Guarantee::new(Level::S3, "never, within the process; it is gone with the process");
        // Two of them are two stores, and whoever orders locks by where they are must see that.
        let address = format!("memory:{}", STORES.fetch_add(1, Ordering::Relaxed));
        let can = Capabilities { rate: true, clock: true, at_once: true, ..Capabilities::default() };
        let info = StoreInfo::new("memory", address, guarantee).with_capabilities(can);
        Recorded::new(Self { info, clock, shelves: Mutex::default() })
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // A panic while the mutex was held can only come from a defect in a pure transition; the maps are sound.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &Key, step: &Step) -> Result<Answer> {
        let mut shelves = self.shelves();
        // Giving back depends on no clock; what has run out meanwhile is as well noticed by the next step.
        if !matches!(step, Step::Release { barrier: false, .. }) {
            shelves.seen = self.now();
        }
        let around = around(shelves.seen);
        shelves.apply(key, step, &around)
    }

    fn now(&self) -> Moment {
        Moment(self.clock.now().as_micros())
    }
}

fn around(now: Moment) -> Surroundings<'static> {
    // Nothing is read or written whole here: a crowd costs no more than it is.
    Surroundings { now, session: None, crowd: usize::MAX, alive: &|_| true }
}

impl RecordStore for Memory {
    type Bell = MemoryBell;

    fn info(&self) -> &StoreInfo {
        &self.info
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        self.take(key, &step)
    }

    fn apply_now(&self, key: &Key, step: Step) -> Result<Result<Answer>, Step> {
        Ok(self.take(key, &step))
    }

    fn bell(&self, _key: &Key, id: ClaimId) -> MemoryBell {
        let (sender, receiver) = watch::channel(());
        self.shelves().bells.insert(id, sender);
        MemoryBell(receiver)
    }

    async fn rate(&self, key: &Key, step: RateStep) -> Result<RateAnswer> {
        let now = self.now();
        self.shelves().rate(key, step, now)
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let shelves = self.shelves();
        let kept = shelves.records.get(key.full());
        Ok(kept.and_then(|kept| kept.record.view(key.full(), &around(self.now()))))
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let around = around(self.now());
        let shelves = self.shelves();
        let after = |name: &str| cursor.is_none_or(|cursor| name > cursor);
        let mut names: Vec<_> =
            shelves.records.keys().filter(|name| name.starts_with(prefix) && after(name)).collect();
        names.sort_unstable();
        let next = names.get(limit.wrapping_sub(1)).filter(|_| names.len() > limit).map(ToString::to_string);
        names.truncate(limit);
        let locks =
            names.into_iter().filter_map(|name| shelves.records[name].record.view(name, &around)).collect();
        Ok(LockPage { locks, next })
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        let now = self.now();
        Ok(self.shelves().live_cell(name, now).cloned())
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let now = self.now();
        let mut shelves = self.shelves();
        let found = shelves.live_cell(name, now).map(|cell| cell.version);
        let wanted = match expect {
            Expect::Absent => None,
            Expect::Version(version) => Some(version),
        };
        if found != wanted {
            return Ok(CellWrite::Conflict);
        }
        shelves.cell_version += 1;
        let cell = Cell { name: name.to_owned(), version: shelves.cell_version, value: value.to_vec() };
        let until = ttl.map(|ttl| Moment(now.0.saturating_add(ttl.as_micros() as u64)));
        shelves.cells.insert(name.to_owned(), (cell, until));
        shelves.sweep(now);
        Ok(CellWrite::Written(shelves.cell_version))
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let now = self.now();
        let shelves = self.shelves();
        let from = cursor.map_or(Bound::Included(prefix), Bound::Excluded);
        let range = shelves.cells.range::<str, _>((from, Bound::Unbounded));
        let mut live = range
            .take_while(|(name, _)| name.starts_with(prefix))
            .filter(|(_, (_, until))| until.is_none_or(|until| until > now));
        let cells: Vec<Cell> = live.by_ref().take(limit).map(|(_, (cell, _))| cell.clone()).collect();
        let next = live.next().and_then(|_| cells.last()).map(|cell| cell.name.clone());
        Ok(CellPage { cells, next })
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        Ok(Some(self.clock.wall()))
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        let alone = Finding::note("one-process", "these locks exist in this process only")
            .because("another process that opens memory: has locks of its own; both would be granted the same name")
            .remedy("use sqlite:PATH for the processes of one machine, a server for those of several");
        Ok(vec![alone])
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

impl Shelves {
    fn apply(&mut self, key: &Key, step: &Step, around: &Surroundings<'_>) -> Result<Answer> {
        if let Step::Release { id, .. } = step
            && !self.bells.is_empty()
        {
            self.bells.remove(id);
        }
        if !self.limiters.is_empty() {
            self.refuse_limiter(key, step, around.now)?;
        }
        let kept = match self.records.entry_ref(key.full()) {
            EntryRef::Occupied(entry) => entry.into_mut(),
            EntryRef::Vacant(entry) => {
                let record = Record::in_room_of(self.spare.take(), self.floor);
                entry.insert_with_key(key.shared(), Kept { record, lingers: false })
            }
        };
        let applied = kept.record.apply(step, around);
        if kept.record.is_vacant() && !kept.lingers {
            kept.lingers = true;
            self.linger(key.shared());
        }
        self.sweep(around.now);
        self.ring(&applied.wake);
        applied.answer
    }

    /// Nobody uses this name any more: it makes room by the one that came to this first, if nobody uses that one still.
    fn linger(&mut self, name: Arc<str>) {
        self.lingering.push_back(name);
        if self.lingering.len() <= LINGERING {
            return;
        }
        let Some(oldest) = self.lingering.pop_front() else { return };
        if let EntryRef::Occupied(mut entry) = self.records.entry_ref(&*oldest) {
            entry.get_mut().lingers = false;
            if entry.get().record.is_vacant() {
                let Kept { record, .. } = entry.remove();
                self.floor = self.floor.max(record.fence());
                self.spare = record.is_small().then_some(record);
                self.sweep_at = self.sweep_at.min(LEAST_SWEPT.max(4 * self.len()));
            }
        }
    }

    /// How much is kept, of all kinds.
    fn len(&self) -> usize {
        self.records.len() + self.cells.len() + self.limiters.len()
    }

    /// Removes what only time has emptied: nobody may ever ask for those names again. Not at each step: looking through
    /// all of them now and then costs little per step.
    fn sweep(&mut self, now: Moment) {
        if self.len() <= self.sweep_at {
            return;
        }
        let floor = &mut self.floor;
        self.records.retain(|_, Kept { record, lingers }| {
            record.expire(now);
            *floor = (*floor).max(record.fence());
            // Those that linger are removed where they do.
            *lingers || !record.is_vacant()
        });
        self.cells.retain(|_, (_, until)| until.is_none_or(|until| until > now));
        self.limiters.retain(|_, limiter| !limiter.is_over(now));
        self.sweep_at = LEAST_SWEPT.max(2 * self.len());
    }

    fn ring(&self, wakes: &[Wake]) {
        for wake in wakes {
            let rung = self.bells.get(&wake.id).is_some_and(|bell| bell.send(()).is_ok());
            if rung && wake.alone {
                return;
            }
        }
    }

    /// A name in use as a limiter is neither a lock nor a latch.
    fn refuse_limiter(&self, key: &Key, step: &Step, now: Moment) -> Result<()> {
        let (operation, wanted) = match step {
            Step::Latch(_) => (Operation::Latch, "a latch"),
            Step::Attempt { .. } => (Operation::Acquire, "a lock"),
            _ => return Ok(()),
        };
        if self.limiters.get(key.full()).is_none_or(|limiter| limiter.is_over(now)) {
            return Ok(());
        }
        let message = format!("this name is in use as a rate limiter, not as {wanted}; choose another name");
        Err(Error::new(ErrorKind::Conflict, operation, message))
    }

    fn rate(&mut self, key: &Key, step: RateStep, now: Moment) -> Result<RateAnswer> {
        let kept = self.records.get(key.full());
        let view = kept.and_then(|kept| kept.record.view(key.full(), &around(now)));
        if let Some(found) = view {
            return Err(Error::conflict(Operation::Rate, found.kind, "a rate limiter"));
        }
        if self.limiters.get(key.full()).is_some_and(|limiter| limiter.is_over(now)) {
            self.limiters.remove(key.full());
        }
        Ok(match (step, self.limiters.get_mut(key.full())) {
            (RateStep::TrySet { .. }, Some(limiter)) => RateAnswer::Kept(limiter.rate()),
            (RateStep::Set { rate, .. } | RateStep::TrySet { rate, .. }, _) => {
                self.limiters.insert(key.full().into(), Limiter::new(rate, now));
                self.sweep(now);
                RateAnswer::Set
            }
            (_, None) => RateAnswer::Unset,
            (RateStep::Take { id, permits }, Some(limiter)) => limiter.take(id, permits, now),
            (RateStep::Read { client }, Some(limiter)) => limiter.read(client, now),
            (RateStep::Remove { .. }, Some(_)) => {
                self.limiters.remove(key.full());
                RateAnswer::Removed
            }
        })
    }

    fn live_cell(&self, name: &str, now: Moment) -> Option<&Cell> {
        let (cell, until) = self.cells.get(name)?;
        until.is_none_or(|until| until > now).then_some(cell)
    }
}

/// Wakes one claim. A watch keeps the last ring for whoever looks later: no ring is lost.
#[derive(Debug)]
pub struct MemoryBell(watch::Receiver<()>);

impl Bell for MemoryBell {
    async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            // The store dropped our bell: the claim is being released and will not wait again.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_swept_whatever_it_is() {
        let mut shelves = Shelves::default();
        for time in 0..20_000 {
            let cell = Cell { name: time.to_string(), version: 1, value: Vec::new() };
            shelves.cells.insert(cell.name.clone(), (cell, Some(Moment(time + 10))));
            shelves.sweep(Moment(time));
        }
        assert!(shelves.cells.len() <= LEAST_SWEPT + 1, "{}", shelves.cells.len());
    }
}
