//! What a faultline is told to do, shared by the test and by every connection.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, watch};

/// How requests and answers are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Speech {
    /// The protocol of Redis.
    Resp,
    /// Whatever arrives at once is one request, or one answer.
    Pieces,
}

/// How often a verb on a request has acted.
#[derive(Clone, Debug, Default)]
pub struct Hit(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    times: AtomicUsize,
    more: Notify,
}

impl Hit {
    /// So often until now.
    pub fn times(&self) -> usize {
        self.0.times.load(Ordering::Acquire)
    }

    /// Completes when it has acted this often.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn reached(&self, times: usize) {
        loop {
            let more = self.0.more.notified();
            if self.times() >= times {
                return;
            }
            more.await;
        }
    }

    pub(super) fn add(&self) {
        self.0.times.fetch_add(1, Ordering::AcqRel);
        self.0.more.notify_waiters();
    }
}

/// A request that is kept. Let go when dropped.
#[derive(Debug)]
pub struct Held {
    hit: Hit,
    gate: watch::Sender<bool>,
}

impl Held {
    /// Completes when the request has come.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn caught(&self) {
        self.hit.reached(1).await;
    }

    /// Lets it go on to the server, however late that is.
    pub fn deliver(self) {
        drop(self);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.send_replace(true);
    }
}

/// What happens to one request.
#[derive(Debug)]
pub(super) enum Fate {
    Carry,
    SwallowReply(Hit),
    Hold { hit: Hit, gate: watch::Receiver<bool> },
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) refuses: bool,
    pub(super) stalls: bool,
    pub(super) delay: Duration,
    swallows: Vec<(Vec<u8>, usize, Hit)>,
    holds: Vec<(Vec<u8>, Hit, watch::Receiver<bool>)>,
    lines: HashMap<u64, Line>,
    next: u64,
}

/// Ends of one connection that can be pulled from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) cut: Arc<Notify>,
    pub(super) half_close: Arc<Notify>,
    pub(super) silence: Arc<Notify>,
}

/// What all connections look at.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) speech: Speech,
    state: Mutex<State>,
    changed: Notify,
}

impl Rules {
    pub(super) fn new(speech: Speech) -> Self {
        Self { speech, state: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_waiters();
    }

    /// Completes when nothing keeps what has come from going on: at once, after the delay, or when a stall ends.
    pub(super) async fn pass(&self) {
        let delay = self.state().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        loop {
            let changed = self.changed.notified();
            if !self.state().stalls {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn cut(&self) {
        // Kept for those who look later: a connection may be busy with something else right now.
        self.state().lines.values().for_each(|line| line.cut.notify_one());
    }

    pub(super) fn half_close(&self) {
        self.state().lines.values().for_each(|line| line.half_close.notify_one());
    }

    pub(super) fn silence(&self) {
        self.state().lines.values().for_each(|line| line.silence.notify_one());
    }

    pub(super) fn connections(&self) -> usize {
        self.state().lines.len()
    }

    /// Takes note of a connection, unless it is refused.
    pub(super) fn enter(&self) -> Option<(u64, Line)> {
        let mut state = self.state();
        if state.refuses {
            return None;
        }
        state.next += 1;
        let (number, line) = (state.next, Line::default());
        state.lines.insert(number, line.clone());
        Some((number, line))
    }

    pub(super) fn leave(&self, number: u64) {
        self.state().lines.remove(&number);
    }

    pub(super) fn swallow(&self, containing: &[u8], times: usize) -> Hit {
        let hit = Hit::default();
        self.state().swallows.push((containing.to_vec(), times, hit.clone()));
        hit
    }

    pub(super) fn hold(&self, containing: &[u8]) -> Held {
        let (hit, (gate, opened)) = (Hit::default(), watch::channel(false));
        self.state().holds.push((containing.to_vec(), hit.clone(), opened));
        Held { hit, gate }
    }

    /// What happens to this request. A verb that has acted as often as it was asked to is spent.
    pub(super) fn fate(&self, request: &[u8]) -> Fate {
        let contains = |part: &[u8]| request.windows(part.len().max(1)).any(|piece| piece == part);
        let mut state = self.state();
        if let Some(at) = state.holds.iter().position(|(part, ..)| contains(part)) {
            let (_, hit, gate) = state.holds.remove(at);
            return Fate::Hold { hit, gate };
        }
        let Some(at) = state.swallows.iter().position(|(part, left, _)| *left > 0 && contains(part)) else {
            return Fate::Carry;
        };
        state.swallows[at].1 -= 1;
        let hit = state.swallows[at].2.clone();
        if state.swallows[at].1 == 0 {
            state.swallows.remove(at);
        }
        Fate::SwallowReply(hit)
    }
}
