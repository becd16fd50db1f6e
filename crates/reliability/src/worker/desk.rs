//! What one task works with, and the four acts every workload is made of: acquire, read, work and write, release.
//! Each is recorded before it begins and after it ends.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use leasehold::{Client, Error, ErrorKind, Guard, Lock, Result};
use leasehold_testkit::history::{Act, Asked, Mode, Recorder};
use tokio::time::{sleep, timeout};

use super::{Arguments, connection::Connection, next_owner, say};
use crate::dice::Dice;

/// One acquire in so many is dropped half-way, one guard in so many is dropped instead of released.
const DROPPED: u64 = 25;
/// The longest that an acquire to be dropped may go on.
const HALF_WAY: Duration = Duration::from_millis(8);
/// How long to leave a store alone that answered with an error.
const SULK: Duration = Duration::from_millis(40);

/// A task's tools.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    pub(super) register: Connection,
    pub(super) dice: Dice,
    pub(super) tally: Tally,
    pub(super) owners: Arc<AtomicU64>,
    pub(super) arguments: Arc<Arguments>,
}

/// How often which error was met. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<Mutex<BTreeMap<String, u64>>>);

/// What the cells of a lock held before the work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    plain: u64,
    fenced: Option<u64>,
}

impl Tally {
    /// Counts an error. The first of each sort is written to the log, with what caused it.
    pub(super) fn count(&self, error: &Error) {
        let sort = format!("{:?} at {:?}", error.kind(), error.operation());
        if self.count_as(&sort) == 1 {
            let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
            say(&format!("first {sort}: {error}{}", cause.unwrap_or_default()));
        }
    }

    /// Counts what has no error of ours; says how often it was met by now.
    pub(super) fn count_as(&self, sort: &str) -> u64 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(sort.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// One line per error.
    pub(super) fn lines(&self) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> =
            counts.iter().map(|(sort, count)| format!("error {sort}\t{count}")).collect();
        lines.join("\n")
    }
}

impl Desk {
    /// A number for one acquisition, or for an owner that enters again.
    pub(super) fn owner(&self) -> u64 {
        next_owner(self.arguments.process, &self.owners)
    }

    /// A name of this kind.
    pub(super) fn name(&mut self, kind: &str) -> String {
        format!("{kind}-{}", self.dice.below(self.arguments.names))
    }

    pub(super) fn options(&self, lock: Lock) -> Lock {
        let Arguments { ttl, wait, .. } = *self.arguments;
        lock.ttl(Duration::from_millis(ttl)).wait(Duration::from_millis(wait))
    }

    /// Acquires a lock; `None` if it was not granted, for whatever reason.
    pub(super) async fn acquire(&mut self, lock: Lock, mode: Mode, owner: u64) -> Option<Guard> {
        let lock = self.options(lock);
        let asked = self.recorder.asked(lock.name(), owner, Act::Acquire { mode });
        let acquired = if self.dice.one_in(DROPPED) {
            let patience = self.dice.between(Duration::ZERO, HALF_WAY);
            // Dropped half-way: what becomes of it is the library's business, and unknown to us.
            timeout(patience, lock.acquire()).await.ok()
        } else {
            Some(lock.acquire().await)
        };
        self.answered(acquired, asked).await
    }

    pub(super) async fn answered(&mut self, acquired: Option<Result<Guard>>, asked: Asked) -> Option<Guard> {
        match acquired {
            None => asked.unknown(),
            Some(Ok(guard)) => {
                asked.granted(guard.fence(), guard.deadline().as_nanos());
                return Some(guard);
            }
            Some(Err(error)) => {
                if error.kind() == ErrorKind::Busy {
                    asked.failed();
                } else {
                    asked.unknown();
                }
                self.met(&error).await;
            }
        }
        None
    }

    /// Reads both cells of a lock.
    pub(super) async fn read(&mut self, name: &str, owner: u64, fence: u64) -> io::Result<Reading> {
        let plain = self.register.read(&format!("plain/{name}"), owner, 0).await?.unwrap_or(0);
        let fenced = self.register.read(&format!("fenced/{name}"), owner, fence).await?;
        Ok(Reading { plain, fenced })
    }

    /// Works under a lock: one look at it, half of the time with an eye on it, another look, then the other half without.
    /// False if it noticed that the lock is lost.
    pub(super) async fn work(&mut self, guard: &Guard, owner: u64) -> bool {
        self.work_both(guard, None, owner).await
    }

    /// As [`work`](Self::work), under one lock or two.
    pub(super) async fn work_both(&mut self, guard: &Guard, other: Option<&Guard>, owner: u64) -> bool {
        let work = Duration::from_millis(self.arguments.work);
        let lease = Duration::from_millis(self.arguments.ttl);
        let long = if self.dice.one_in(self.arguments.long) { lease * 3 / 2 } else { Duration::ZERO };
        let watched = self.dice.between(Duration::ZERO, work / 2 + long);
        let guards = || [guard].into_iter().chain(other);
        // What was lost before anybody watched is found here: from now on a loss is told.
        let held = guards().all(|guard| self.look(guard, owner));
        // The first loss ends the work: the other lock would only hide when it was told.
        let kept = held
            && tokio::select! {
                kept = self.watch(guard, owner, watched) => kept,
                kept = self.watch_if_any(other, owner, watched) => kept,
            };
        if !kept || !guards().all(|guard| self.look(guard, owner)) {
            for guard in guards() {
                self.recorder.noticed(guard.name(), owner, Act::Lost);
            }
            return false;
        }
        sleep(self.dice.between(Duration::ZERO, work / 2)).await;
        true
    }

    /// Watches the second lock of two; of one alone there is none, and nothing to tell.
    async fn watch_if_any(&self, guard: Option<&Guard>, owner: u64, span: Duration) -> bool {
        match guard {
            Some(guard) => self.watch(guard, owner, span).await,
            None => std::future::pending().await,
        }
    }

    async fn watch(&self, guard: &Guard, owner: u64, span: Duration) -> bool {
        let over = sleep(span);
        tokio::pin!(over);
        let mut known = guard.deadline();
        loop {
            tokio::select! {
                () = &mut over => return true,
                _ = guard.lost() => return false,
                deadline = guard.renewed(known) => {
                    if deadline <= known {
                        return false;
                    }
                    known = deadline;
                    self.recorder.noticed(guard.name(), owner, Act::Renewed { deadline: known.as_nanos() });
                }
            }
        }
    }

    /// Asks the guard. Its deadline is read after its answer, so that a renewal in between speaks for it.
    pub(super) fn look(&self, guard: &Guard, owner: u64) -> bool {
        let asked = self.recorder.asked(guard.name(), owner, Act::Check);
        if guard.check().is_err() {
            asked.failed();
            return false;
        }
        asked.held(guard.deadline().as_nanos());
        true
    }

    /// Writes both cells of a lock, from what was read there before.
    pub(super) async fn write(
        &mut self,
        name: &str,
        owner: u64,
        fence: u64,
        reading: Reading,
    ) -> io::Result<()> {
        let value = self.owner();
        self.register.write(&format!("plain/{name}"), [owner, 0], [reading.plain, value]).await?;
        if let Some(read) = reading.fenced {
            self.register.write(&format!("fenced/{name}"), [owner, fence], [read, value]).await?;
        }
        Ok(())
    }

    /// Releases a lock, or now and then just drops it.
    pub(super) async fn release(&mut self, guard: Guard, owner: u64) {
        let asked = self.recorder.asked(guard.name(), owner, Act::Release);
        if self.dice.one_in(DROPPED) {
            drop(guard);
            return asked.unknown();
        }
        let released = guard.release().await;
        self.released(released, asked).await;
    }

    pub(super) async fn released(&mut self, released: Result<()>, asked: Asked) {
        match released {
            Ok(()) => asked.done(),
            Err(error) => {
                if error.kind() == ErrorKind::Lost {
                    asked.failed();
                } else {
                    asked.unknown();
                }
                self.met(&error).await;
            }
        }
    }

    async fn met(&mut self, error: &Error) {
        self.tally.count(error);
        if !matches!(error.kind(), ErrorKind::Busy | ErrorKind::Lost) {
            sleep(self.dice.between(Duration::ZERO, SULK)).await;
        }
    }
}
