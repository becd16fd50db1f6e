//! The gate: in one process only the head of the line contends at the store.
//!
//! A thousand tasks that wait for one name are one waiter to the store; the others stand here, in the order they
//! came. It is for exclusive claims outside the fair line: fair ones must each stand in the store's own line,
//! and shared ones and permits can be granted side by side.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::time::Instant;
use crate::{backend::Busy, key::Key};

/// The lines of one client.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    lines: Mutex<HashMap<Key, Line>>,
    /// How many lines there are: an acquire finds out without a lock that there is none.
    count: AtomicUsize,
}

/// The local waiters of one name.
#[derive(Debug)]
struct Line {
    turn: Arc<Semaphore>,
    standing: usize,
    /// What the head was last told by the store, and when.
    busy: Busy,
    heard: Instant,
    /// The store has not answered the head since: nobody may be told that somebody else holds the lock.
    silent: bool,
}

/// A place in a line, from joining it to leaving it.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    key: Key,
    turn: Arc<Semaphore>,
}

impl Gate {
    /// What the line for this name was last told, if there is a line and the store answers it.
    pub(crate) fn line(&self, key: &Key) -> Option<Busy> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let lines = self.lines();
        let line = lines.get(key).filter(|line| !line.silent)?;
        let mut busy = line.busy.clone();
        // The store counts the line's head at most; the rest of the line is known only here.
        busy.waiters = busy.waiters.max(line.standing);
        Some(busy)
    }

    /// Joins the line for this name.
    pub(crate) fn join(&self, key: &Key, busy: Busy, now: Instant) -> Place<'_> {
        let mut lines = self.lines();
        let line = lines.entry(key.clone()).or_insert_with(|| {
            self.count.fetch_add(1, Ordering::SeqCst);
            let turn = Arc::new(Semaphore::new(1));
            Line { turn, standing: 0, busy, heard: now, silent: false }
        });
        line.standing += 1;
        Place { gate: self, key: key.clone(), turn: line.turn.clone() }
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
        line.silent = busy.is_none();
        if let Some(busy) = busy {
            line.busy = busy.clone();
            line.heard = now;
        }
    }

    /// When the store last answered this line: a line that hears nothing fails as one, not one after the other.
    pub(crate) fn heard(&self, now: Instant) -> Instant {
        self.gate.lines().get(&self.key).map_or(now, |line| line.heard)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.gate.lines();
        let Some(line) = lines.get_mut(&self.key) else { return };
        line.standing -= 1;
        if line.standing == 0 {
            lines.remove(&self.key);
            self.gate.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
