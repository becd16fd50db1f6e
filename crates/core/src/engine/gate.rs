//! The gate: in one process only the head of the line contends at the store.
//!
//! A thousand tasks that wait for one name are one waiter to the store; the others stand here, in the order they
//! came. Even before there is a line, whoever can wait for ever does not ask for what another of us is asking for
//! already: of those who come at once, one tries and the others begin the line. It is for exclusive claims outside the
//! fair line: fair ones must each stand in the store's own line, and shared ones and permits can be granted side by
//! side. Where a cohort has the name, its line is here even if nobody stands in it; how a lock is handed on along it is
//! in `cohort.rs`.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, PoisonError, Weak},
};

use hashbrown::HashSet;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use super::{
    Engine,
    cohort::{self, Candidate},
    hold::Hold,
    time::Instant,
    won::Won,
};
use crate::{
    backend::Busy,
    id::ClaimId,
    key::Key,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The lines of one client.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    lines: Mutex<HashMap<Key, Line>>,
    /// How many lines there are: an acquire finds out without a lock that there is none.
    count: AtomicUsize,
    /// Names that one of us is [trying](Trying) for.
    trying: Mutex<HashSet<Key>>,
    /// Rings when one of us was answered.
    tried: Notify,
}

/// The local waiters of one name.
#[derive(Debug)]
struct Line {
    turn: Arc<Semaphore>,
    standing: usize,
    /// What the head was last told by the store.
    busy: Busy,
    /// The store has not answered the head since: nobody may be told that somebody else holds the lock.
    silent: bool,
    /// Since when it is asked and does not answer.
    unanswered: Option<Instant>,
    /// What a cohort of ours holds, until the store has it back.
    cohort: Weak<Hold>,
    /// Those who would take it over, first come first.
    heirs: VecDeque<Candidate>,
}

/// A place in a line, from joining it to leaving it.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    key: Key,
    turn: Arc<Semaphore>,
}

/// One of us is trying for a name, not in line, until it is answered.
#[derive(Debug)]
pub(super) struct Trying {
    engine: Arc<Engine>,
    key: Key,
}

impl Trying {
    /// `None` if another one is.
    pub(super) fn begin(engine: &Arc<Engine>, key: &Key) -> Option<Self> {
        let is_first = engine.gate.trying().insert(key.clone());
        is_first.then(|| Self { engine: engine.clone(), key: key.clone() })
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        let gate = &self.engine.gate;
        gate.trying().remove(&self.key);
        if gate.count.load(Ordering::SeqCst) > 0 {
            gate.tried.notify_waiters();
        }
    }
}

impl Gate {
    /// What the line for this name was last told, if there is a line and the store answers it.
    pub(crate) fn line(&self, key: &Key) -> Option<Busy> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let lines = self.lines();
        let line = lines.get(key)?;
        if let Some(hold) = line.passing() {
            return Some(cohort::busy(&hold, line.standing));
        }
        if line.silent || line.standing == 0 {
            return None;
        }
        let mut busy = line.busy.clone();
        // The store counts the line's head at most; the rest of the line is known only here.
        busy.waiters = busy.waiters.max(line.standing);
        Some(busy)
    }

    /// Joins the line for this name.
    pub(crate) fn join(&self, key: &Key, busy: Busy) -> Place<'_> {
        self.join_as(key, Some(busy), None)
    }

    /// Joins the line for this name, in one act as a candidate too if a hold may be handed on to us. Without anything
    /// that the store said about it, nobody is told that it is busy until it does.
    pub(super) fn join_as(&self, key: &Key, busy: Option<Busy>, heir: Option<Candidate>) -> Place<'_> {
        let mut lines = self.lines();
        let line = lines.entry(key.clone()).or_insert_with(|| self.begin(busy.clone()));
        if line.standing == 0 {
            line.unanswered = None;
        }
        if line.silent
            && let Some(busy) = busy
        {
            line.hear(busy);
        }
        line.standing += 1;
        line.heirs.extend(heir);
        Place { gate: self, key: key.clone(), turn: line.turn.clone() }
    }

    /// A cohort has the name from now on: whoever of us wants it waits here.
    pub(super) fn passes(&self, hold: &Arc<Hold>) {
        let mut lines = self.lines();
        let line = lines.entry(hold.spec.key.clone()).or_insert_with(|| self.begin(Some(Busy::default())));
        line.cohort = Arc::downgrade(hold);
    }

    /// The store has it back, or never will: the head of the line may contend.
    pub(super) fn passes_no_more(&self, hold: &Hold) {
        let mut lines = self.lines();
        if let Some(line) = lines.get_mut(&hold.spec.key)
            && std::ptr::eq(line.cohort.as_ptr(), hold)
        {
            line.cohort = Weak::new();
            // Its renewals and its release were answered, as far as those in line can know.
            line.unanswered = None;
            self.tidy(&mut lines, &hold.spec.key);
        }
        drop(lines);
        hold.told.notify_waiters();
    }

    /// The first who would take over this hold; it stands by no more.
    pub(super) fn next_heir(&self, hold: &Hold) -> Option<oneshot::Sender<Won>> {
        let mut lines = self.lines();
        let heirs = &mut lines.get_mut(&hold.spec.key)?.heirs;
        let first = heirs.iter().position(|candidate| candidate.fits(hold))?;
        heirs.remove(first).map(|candidate| candidate.sender)
    }

    fn begin(&self, busy: Option<Busy>) -> Line {
        self.count.fetch_add(1, Ordering::SeqCst);
        let (turn, cohort, heirs) = (Arc::new(Semaphore::new(1)), Weak::new(), VecDeque::new());
        let silent = busy.is_none();
        let busy = busy.unwrap_or_default();
        Line { turn, standing: 0, busy, silent, unanswered: None, cohort, heirs }
    }

    /// Removes a line nobody needs any more.
    fn tidy(&self, lines: &mut HashMap<Key, Line>, key: &Key) {
        let needless = |line: &Line| line.standing == 0 && line.cohort.strong_count() == 0;
        if lines.get(key).is_some_and(needless) {
            lines.remove(key);
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn trying(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.trying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Key, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Completes when it is our turn to contend; dropping the permit passes the turn on.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.turn.clone().acquire_owned().await.ok()
    }

    /// Keeps what the store told the head, or that it told nothing, for those behind it and those who only try.
    pub(crate) fn told(&self, busy: Option<&Busy>, now: Instant) {
        let mut lines = self.gate.lines();
        let Some(line) = lines.get_mut(&self.key) else { return };
        if let Some(busy) = busy {
            line.hear(busy.clone());
        } else {
            line.silent = true;
            line.unanswered.get_or_insert(now);
        }
    }

    /// Since when this line is not answered: one that hears nothing fails as one, not one after the other.
    pub(crate) fn unanswered(&self) -> Option<Instant> {
        self.gate.lines().get(&self.key).and_then(|line| line.unanswered)
    }

    /// Completes when none of us is trying for the name outside the line.
    pub(super) async fn tried(&self) {
        loop {
            let mut tried = std::pin::pin!(self.gate.tried.notified());
            tried.as_mut().enable();
            if !self.gate.trying().contains(&self.key) {
                return;
            }
            tried.await;
        }
    }

    /// The hold that a cohort of ours has, and has not lost.
    pub(super) fn passing(&self) -> Option<Arc<Hold>> {
        self.gate.lines().get(&self.key).and_then(Line::passing)
    }

    /// Stands by no more.
    pub(super) fn stand_down(&self, id: ClaimId) {
        if let Some(line) = self.gate.lines().get_mut(&self.key) {
            line.heirs.retain(|candidate| candidate.spec.id != id);
        }
    }
}

impl Line {
    /// The store has answered one who stands here.
    fn hear(&mut self, busy: Busy) {
        (self.busy, self.silent, self.unanswered) = (busy, false, None);
    }

    fn passing(&self) -> Option<Arc<Hold>> {
        self.cohort.upgrade().filter(|hold| !hold.is_over())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.gate.lines();
        let Some(line) = lines.get_mut(&self.key) else { return };
        line.standing -= 1;
        self.gate.tidy(&mut lines, &self.key);
    }
}
