//! One who looks for all: the store is looked at by one task, however many streams there are.
//!
//! It looks about every second while anybody is interested, seldom otherwise, and rests at least four times as long
//! as a look takes, so that a store with very many names is not kept busy by being watched. What a look
//! found is told in one piece. Streams that are too slow lose looks, and of a look with very many changes all lose those;
//! they are told so, and never hold anybody up.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use leasehold::{ClaimId, time::Clock};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

use crate::{
    series::{Point, Series, Tallied},
    store::Store,
    view,
    watch::{Change, End, Seen, Watcher, What, told},
};

/// How often to look while somebody is interested, and while nobody is.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(10);

/// Interest lasts this long after the last question.
const INTEREST: Duration = Duration::from_secs(60);

/// A look rests this many times as long as it took.
const REST: u32 = 4;

/// So many looks a stream may be behind, and so many changes of one are told.
const BEHIND: usize = 64;
const TOLD: usize = 1024;

/// So many broken holds are remembered, lest one be counted twice.
const BROKEN: usize = 256;

/// A hold with less than this left is about to run out.
const EXPIRING: Duration = Duration::from_secs(10);

/// What is known, and who wants to hear of it.
#[derive(Debug)]
pub(crate) struct Live {
    state: Mutex<State>,
    news: broadcast::Sender<Arc<Bulletin>>,
    wake: Arc<Notify>,
    awake: AtomicBool,
}

/// What was seen last.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) seen: Option<Arc<Seen>>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) error: Option<String>,
    pub(crate) series: Series,
    pub(crate) counts: Counts,
    pub(crate) looks: Looks,
    /// Everything since the start.
    pub(crate) total: Tallied,
    /// The last holds that were counted as broken: we may break one ourselves, and see later that it is.
    broken: VecDeque<ClaimId>,
    pub(crate) seq: u64,
    asked: Option<Instant>,
}

/// How often the store was looked at, by whether it answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    pub(crate) seen: u64,
    pub(crate) failed: u64,
}

/// How it stands.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) names: u64,
    pub(crate) held: u64,
    pub(crate) holders: u64,
    pub(crate) waiting: u64,
    pub(crate) expiring: u64,
    pub(crate) acquires: u64,
    pub(crate) waits: u64,
    pub(crate) losses: u64,
    pub(crate) broken: u64,
}

/// What a look has to tell to streams: written once, sent to all.
#[derive(Debug)]
pub(crate) struct Bulletin {
    /// The number of the last change before it, and of its own last.
    pub(crate) before: u64,
    pub(crate) last: u64,
    /// None of them if they are too many.
    pub(crate) changes: Vec<News>,
    pub(crate) overview: Arc<str>,
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) seq: u64,
    /// The name it is about.
    pub(crate) name: Arc<str>,
    pub(crate) data: Arc<str>,
}

impl Live {
    /// Begins to look, on the client's runtime, until nobody holds on to it.
    pub(crate) fn start(store: Store) -> Arc<Self> {
        let live = Arc::new(Self {
            state: Mutex::default(),
            news: broadcast::Sender::new(BEHIND),
            wake: Arc::default(),
            awake: AtomicBool::new(false),
        });
        let (runtime, wake) = (store.runtime().clone(), live.wake.clone());
        runtime.spawn(run(Arc::downgrade(&live), wake, store));
        live
    }

    /// What was seen last. Whoever asks is interested.
    pub(crate) fn state(&self) -> State {
        let mut state = self.lock();
        state.asked = Some(Instant::now());
        let copy = state.clone();
        drop(state);
        self.rouse();
        copy
    }

    /// News from now on, and the number of the last before.
    pub(crate) fn listen(&self) -> (broadcast::Receiver<Arc<Bulletin>>, u64) {
        let state = self.lock();
        let listening = (self.news.subscribe(), state.seq);
        drop(state);
        self.rouse();
        listening
    }

    /// Whether the last look went well; `None` before the first.
    pub(crate) fn up(&self) -> Option<bool> {
        let state = self.lock();
        match &state.error {
            Some(_) => Some(false),
            None => state.at.map(|_| true),
        }
    }

    /// Ends a long rest.
    fn rouse(&self) {
        if !self.awake.swap(true, Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    fn is_interesting(&self) -> bool {
        let asked = self.lock().asked.is_some_and(|asked| asked.elapsed() < INTEREST);
        let awake = asked || self.news.receiver_count() > 0;
        self.awake.store(awake, Ordering::SeqCst);
        awake
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// We broke this one. A look may come too late to see it held.
    pub(crate) fn broke(&self, id: ClaimId) {
        let mut state = self.lock();
        if state.is_first_break(id) {
            let Counts { held, waiting, .. } = state.counts;
            let tallied = Tallied { broken: 1, held, waiting, ..Tallied::default() };
            state.series.add(Timestamp::now(), tallied);
            state.total.add(tallied);
        }
    }

    fn failed(&self, error: String) {
        let mut state = self.lock();
        state.error = Some(error);
        state.looks.failed += 1;
        self.tell(&state, state.seq, Vec::new());
    }

    fn saw(&self, seen: &Arc<Seen>, changes: &[Change]) {
        let now = Timestamp::now();
        let mut state = self.lock();
        (state.seen, state.at, state.error) = (Some(seen.clone()), Some(now), None);
        state.looks.seen += 1;
        let counts = Counts::of(seen);
        let mut tallied = Tallied { held: counts.held, waiting: counts.waiting, ..Tallied::default() };
        let (before, mut news) = (state.seq, Vec::new());
        let is_told = changes.len() <= TOLD && self.news.receiver_count() > 0;
        for change in changes {
            let is_counted = matches!(&change.what, What::Ended(holder, End::Broken(_)) if !state.is_first_break(holder.id));
            if !is_counted {
                tallied.count(&change.what);
            }
            state.seq += 1;
            if is_told {
                let data = told(change, state.seq, now).to_string().into();
                news.push(News { seq: state.seq, name: Arc::from(&*change.name), data });
            }
        }
        state.series.add(now, tallied);
        state.total.add(tallied);
        let sum = state.series.sum();
        state.counts = Counts {
            acquires: sum.acquires,
            waits: sum.waits,
            losses: sum.losses,
            broken: sum.broken,
            ..counts
        };
        self.tell(&state, before, news);
    }

    fn tell(&self, state: &State, before: u64, changes: Vec<News>) {
        if self.news.receiver_count() > 0 {
            let overview = state.brief(Timestamp::now()).to_string().into();
            // Nobody listens any more: then nobody misses it.
            drop(self.news.send(Arc::new(Bulletin { before, last: state.seq, changes, overview })));
        }
    }
}

impl State {
    /// What a stream hears with every look.
    fn brief(&self, now: Timestamp) -> Value {
        json!({ "now": view::time(now), "up": self.error.is_none() && self.at.is_some(), "error": self.error,
            "latency_ms": self.latency(), "counts": self.counts, "complete": self.complete(),
            "point": self.series.last() })
    }

    fn is_first_break(&mut self, id: ClaimId) -> bool {
        if self.broken.contains(&id) {
            return false;
        }
        if self.broken.len() >= BROKEN {
            self.broken.pop_front();
        }
        self.broken.push_back(id);
        true
    }

    /// How long the store took to answer, with one decimal.
    pub(crate) fn latency(&self) -> Option<f64> {
        self.seen.as_ref().map(|seen| (seen.latency.as_secs_f64() * 10_000.0).round() / 10.0)
    }

    pub(crate) fn complete(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.complete)
    }

    /// What was seen, if that is how it stands: not while the store does not answer, nor when the next look is long overdue.
    pub(crate) fn current(&self) -> Option<&Seen> {
        let seen = self.seen.as_deref().filter(|_| self.error.is_none())?;
        seen.age().is_none_or(|age| !is_old(age, seen.took)).then_some(seen)
    }

    pub(crate) fn points(&self) -> Vec<&Point> {
        self.series.points().collect()
    }
}

impl Counts {
    fn of(seen: &Seen) -> Self {
        let mut counts = Self { names: seen.locks.len() as u64, ..Self::default() };
        for lock in seen.locks.values() {
            counts.held += u64::from(!lock.holders.is_empty());
            counts.holders += lock.holders.len() as u64;
            counts.waiting += lock.waiters.len() as u64;
            counts.expiring +=
                lock.holders.iter().filter(|holder| holder.remaining < EXPIRING).count() as u64;
        }
        counts
    }
}

impl Tallied {
    fn count(&mut self, what: &What) {
        match what {
            What::Acquired(_) => self.acquires += 1,
            What::Waiting(_) => self.waits += 1,
            What::Ended(_, End::Expired) => self.losses += 1,
            What::Ended(_, End::Broken(_)) => self.broken += 1,
            What::Ended(_, End::Released | End::Unknown) | What::Left(_) | What::Changed => {}
        }
    }

    fn add(&mut self, more: Self) {
        self.acquires += more.acquires;
        self.waits += more.waits;
        self.losses += more.losses;
        self.broken += more.broken;
        (self.held, self.waiting) = (more.held, more.waiting);
    }
}

/// Whether a look that took so long is so old that the next but one should be over by now.
fn is_old(age: Duration, took: Duration) -> bool {
    age > ((took * REST).max(SELDOM) + took) * 2
}

/// The last one who held on to it lets the task end now, not after its rest.
impl Drop for Live {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

async fn run(live: Weak<Live>, wake: Arc<Notify>, store: Store) {
    let (mut watcher, clock) = (Watcher::of(store, ""), Clock::boot());
    while live.strong_count() > 0 {
        let looked = watcher.look().await;
        let Some(live) = live.upgrade() else { return };
        let took = match looked {
            Ok(changes) => watcher.seen().map_or(EVERY, |seen| {
                live.saw(seen, &changes);
                seen.took
            }),
            Err(error) => {
                live.failed(error.to_string());
                EVERY
            }
        };
        let interesting = live.is_interesting();
        drop(live);
        let rest = (took * REST).max(EVERY);
        if interesting {
            clock.pause(rest).await;
            continue;
        }
        tokio::select! {
            biased;
            () = wake.notified() => {}
            () = clock.pause(rest.max(SELDOM)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold::{Client, backend::Memory};

    use super::*;

    #[test]
    fn a_look_is_old_when_two_more_should_be_over() {
        let seconds = Duration::from_secs;
        assert!(!is_old(seconds(20), Duration::ZERO) && is_old(seconds(21), Duration::ZERO));
        assert!(
            !is_old(seconds(100), seconds(10)) && is_old(seconds(101), seconds(10)),
            "long ones are rare"
        );
    }

    #[tokio::test]
    async fn looks_are_counted_by_whether_the_store_answered() {
        let live = Live::start(Store::new(Client::new(Memory::new())));
        let before = live.state().looks;
        live.failed("the store cannot be reached".to_owned());
        live.saw(&Arc::default(), &[]);
        let known = live.state();
        let after = known.looks;
        assert!(known.current().is_some(), "it was seen");
        live.failed("the store cannot be reached".to_owned());
        assert!(live.state().current().is_none(), "and is not known any more");
        assert_eq!(after.failed, before.failed + 1);
        assert!(after.seen > before.seen, "it looks by itself, too");
    }

    #[tokio::test]
    async fn a_look_is_told_in_one_piece_and_without_its_changes_if_they_are_too_many() {
        let live = Live::start(Store::new(Client::new(Memory::new())));
        let (mut news, mut seq) = live.listen();
        for (count, told) in [(3, 3), (TOLD, TOLD), (TOLD + 1, 0), (50_000, 0)] {
            let change = |number| Change { name: format!("n{number}"), what: What::Changed, lock: None };
            live.saw(&Arc::default(), &(0..count).map(change).collect::<Vec<_>>());
            let bulletin = loop {
                let bulletin = news.recv().await.unwrap();
                // It looks by itself, too, and sees nothing.
                if bulletin.last > seq {
                    break bulletin;
                }
            };
            assert_eq!((bulletin.before, bulletin.last), (seq, seq + count as u64));
            assert_eq!(bulletin.changes.len(), told);
            assert!(bulletin.changes.iter().map(|news| news.seq).eq(seq + 1..=seq + told as u64));
            seq = bulletin.last;
        }
    }
}
