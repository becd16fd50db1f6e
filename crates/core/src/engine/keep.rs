//! The keeper: one task per client that renews what is held and notices what is lost.
//!
//! Every hold has one entry in a schedule ordered by when to look at it next: to renew it, or at its deadline.
//! What is due together is renewed together. Rounds run side by side and nothing waits for one, so a store that
//! does not answer about one lock delays neither another's renewal nor the notice of its loss.

use std::{
    collections::{BTreeMap, HashSet},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::Notify;

use super::{
    history::{self, History, Past},
    hold::Hold,
    observe,
    presence::Presence,
    rumour::{LASTING, Listening},
    time::{Clock, Instant, TICK},
};
use crate::{
    backend::{Backend, Capabilities, ClaimSpec, Holder, Loss, Rumour, Sign},
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    sync::{Mutex, MutexGuard, atomic::Ordering},
    who::Who,
};

/// The most renewals in one request.
const BATCH: usize = 256;

/// What is due within this time is renewed along: fewer, larger requests.
const GATHER: Duration = Duration::from_millis(20);

/// Not among what is fresh.
pub(super) const NOWHERE: usize = usize::MAX;

/// The holds of one client, by when to look at them.
#[derive(Debug)]
pub(crate) struct Keeper {
    schedule: Mutex<Schedule>,
    bell: Notify,
    /// Where the store wants to be told who holds and who waits.
    presence: Option<Presence>,
    /// Where the store can keep what is over.
    history: Option<History>,
}

#[derive(Debug, Default)]
struct Schedule {
    entries: BTreeMap<(u64, u64), Arc<Hold>>,
    /// What came since the task looked last. Most locks are given back before it looks again, and need no order.
    fresh: Vec<Arc<Hold>>,
    /// When the task looks next; an entry before that must ring the bell.
    looks: u64,
    closed: bool,
}

impl Keeper {
    pub(super) fn new(store: &Capabilities) -> Self {
        let presence = store.announce.then(Presence::default);
        let history = store.cells.then(History::default);
        Self { schedule: Mutex::default(), bell: Notify::new(), presence, history }
    }

    /// Begins to keep a hold won by a request sent at `sent`. Says `false` if it keeps nothing any more.
    pub(super) fn keep(&self, hold: &Arc<Hold>, sent: Instant) -> bool {
        self.stands(&hold.spec, Some(hold.fence), sent);
        let due = hold.next_due(sent);
        hold.renewal_due.set(due);
        let due = due.as_nanos();
        hold.due.store(due, Ordering::Relaxed);
        let mut schedule = self.schedule();
        if schedule.closed {
            return false;
        }
        hold.place.store(schedule.fresh.len(), Ordering::Relaxed);
        schedule.fresh.push(hold.clone());
        if due < schedule.looks {
            self.bell.notify_one();
        }
        true
    }

    /// Stops keeping it, at once: no renewal of it begins after this.
    pub(super) fn forget(&self, hold: &Hold) {
        self.stands_no_more(hold.spec.id);
        self.schedule().remove(hold);
    }

    /// Somebody holds, or waits if there is no fence: others may be told.
    pub(super) fn stands(&self, spec: &Arc<ClaimSpec>, fence: Option<u64>, now: Instant) {
        let Some(presence) = &self.presence else { return };
        presence.began(spec, fence, now);
        self.rouse();
    }

    /// It is over, and so it ended: others may read of it.
    pub(super) fn ended(&self, hold: &Hold, loss: Option<&Loss>, clock: &Clock) {
        if self.history.as_ref().is_some_and(|history| history.note(hold, loss, clock)) {
            self.rouse();
        }
    }

    /// The same for what was nobody's process's.
    pub(super) fn ended_by_ticket(&self, key: &Key, holder: Holder, fence: u64, clock: &Clock) {
        if self.history.as_ref().is_some_and(|history| history.note_seen(key, holder, fence, clock)) {
            self.rouse();
        }
    }

    /// Writes down what is over.
    pub(super) async fn write_history(&self, backend: &dyn Backend) {
        if let Some(history) = &self.history {
            write_down(backend, history.take()).await;
        }
    }

    /// Ends a sleep that has no end of its own.
    fn rouse(&self) {
        if self.schedule().looks == u64::MAX {
            self.bell.notify_one();
        }
    }

    /// It holds and waits no more.
    pub(super) fn stands_no_more(&self, id: ClaimId) {
        if let Some(presence) = &self.presence {
            presence.ended(id);
        }
    }

    /// All holds, kept no more; nothing is kept from now on.
    pub(super) fn take_all(&self) -> Vec<Arc<Hold>> {
        let mut schedule = self.schedule();
        schedule.closed = true;
        self.bell.notify_one();
        schedule.order_fresh();
        std::mem::take(&mut schedule.entries).into_values().collect()
    }

    pub(super) fn len(&self) -> usize {
        let schedule = self.schedule();
        schedule.entries.len() + schedule.fresh.len()
    }

    /// Ends the task.
    pub(super) fn close(&self) {
        self.schedule().closed = true;
        self.bell.notify_one();
    }

    /// Moves the entry of a hold that is still kept.
    fn postpone(&self, hold: &Arc<Hold>, due: Instant) {
        let mut schedule = self.schedule();
        // Under one lock with the look: a hold that was released meanwhile must not come back.
        if schedule.remove(hold) {
            hold.due.store(due.as_nanos(), Ordering::Relaxed);
            schedule.entries.insert(entry(hold), hold.clone());
            if due.as_nanos() < schedule.looks {
                self.bell.notify_one();
            }
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is due: the lost are told, the others come back to be renewed, with an entry at their deadline.
    fn take_due(&self, now: Instant) -> Vec<Arc<Hold>> {
        let horizon = now.after(GATHER).as_nanos();
        let mut schedule = self.schedule();
        schedule.order_fresh();
        let later = schedule.entries.split_off(&(horizon.saturating_add(1), 0));
        let due = std::mem::replace(&mut schedule.entries, later);
        let (mut renewals, mut lost) = (Vec::new(), Vec::new());
        for hold in due.into_values() {
            if hold.runs_out(now) {
                lost.push(hold);
                continue;
            }
            if hold.known_loss().is_some() {
                continue;
            }
            let renew = hold.due.load(Ordering::Relaxed) < hold.deadline().as_nanos();
            hold.due.store(hold.deadline().as_nanos(), Ordering::Relaxed);
            if renew {
                renewals.push(hold.clone());
            }
            schedule.entries.insert(entry(&hold), hold);
        }
        drop(schedule);
        for hold in lost {
            hold.tell_loss();
        }
        renewals
    }

    /// Somebody may have ended these by force: they are due now. The renewal says whether it is so, by whom and why.
    fn look_into(&self, rumours: &[Rumour], now: Instant) {
        let any = rumours.contains(&Rumour::OfAny);
        let ids: HashSet<ClaimId> = rumours.iter().filter_map(Rumour::id).collect();
        let mut schedule = self.schedule();
        schedule.order_fresh();
        let meant = schedule.entries.values().filter(|hold| any || ids.contains(&hold.spec.id));
        for hold in meant.cloned().collect::<Vec<_>>() {
            schedule.remove(&hold);
            hold.due.store(now.as_nanos(), Ordering::Relaxed);
            schedule.entries.insert(entry(&hold), hold);
        }
    }

    /// Whether something has been held for a while.
    fn holds_on(&self, now: Instant) -> bool {
        self.schedule().entries.values().any(|hold| hold.begun.after(LASTING) <= now)
    }

    /// How long to sleep: to the next entry, but a tick at most while there are any. `None` ends the task.
    fn sleep(&self, now: Instant, was_idle: &mut bool) -> Option<Duration> {
        let mut schedule = self.schedule();
        if schedule.closed {
            return None;
        }
        // What came between the look and this must be slept no longer than it can bear.
        schedule.order_fresh();
        let next = schedule.entries.keys().next().map(|(due, _)| Instant::from_nanos(*due));
        let nothing = next.is_none()
            && self.presence.as_ref().is_none_or(Presence::is_empty)
            && self.history.as_ref().is_none_or(History::is_empty);
        // One more tick after the last entry went: locks that come and go need not wake the task each time.
        let idle = std::mem::replace(was_idle, nothing) && nothing;
        let sleep = if idle { Duration::MAX } else { next.map_or(TICK, |due| now.until(due)).min(TICK) };
        schedule.looks = now.after(sleep).as_nanos();
        Some(sleep)
    }
}

impl Schedule {
    /// Takes a hold out, wherever it is. Says whether it was there.
    fn remove(&mut self, hold: &Hold) -> bool {
        let place = hold.place.swap(NOWHERE, Ordering::Relaxed);
        if place == NOWHERE {
            return self.entries.remove(&entry(hold)).is_some();
        }
        self.fresh.swap_remove(place);
        if let Some(moved) = self.fresh.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        true
    }

    /// Puts what is fresh in its order.
    fn order_fresh(&mut self) {
        for hold in self.fresh.drain(..) {
            hold.place.store(NOWHERE, Ordering::Relaxed);
            hold.age();
            self.entries.insert(entry(&hold), hold);
        }
    }
}

/// The keeper's task.
pub(super) async fn run(kept: Kept, backend: Arc<dyn Backend>, clock: Clock, who: Arc<Who>) {
    let keeper = kept.0.clone();
    let mut rounds = FuturesUnordered::<Pin<Box<dyn Future<Output = ()> + Send>>>::new();
    let mut was_idle = true;
    let mut listening = Listening::default();
    // Cloned by the one round of history that is under way: what comes meanwhile waits where it is counted.
    let writing = Arc::new(());
    loop {
        let due = keeper.take_due(clock.now());
        for batch in due.chunks(BATCH) {
            let (keeper, backend, clock) = (keeper.clone(), backend.clone(), clock.clone());
            let batch = batch.to_vec();
            rounds.push(Box::pin(async move { drop(renew(&keeper, &*backend, &clock, &batch, None).await) }));
        }
        if let Some(signs) = keeper.presence.as_ref().and_then(|presence| presence.due(clock.now())) {
            let (backend, who) = (backend.clone(), who.clone());
            rounds.push(Box::pin(async move { announce(&*backend, &who, &signs).await }));
        }
        let history = keeper.history.as_ref().filter(|_| Arc::strong_count(&writing) == 1);
        if let Some(names) = history.map(History::take).filter(|names| !names.is_empty()) {
            let (backend, writing) = (backend.clone(), writing.clone());
            rounds.push(Box::pin(async move {
                write_down(&*backend, names).await;
                drop(writing);
            }));
        }
        if !listening.has_begun() && keeper.holds_on(clock.now()) {
            listening.begin(&*backend, who.client);
        }
        let Some(sleep) = keeper.sleep(clock.now(), &mut was_idle) else { return };
        tokio::select! {
            biased;
            () = keeper.bell.notified() => {}
            Some(()) = rounds.next(), if !rounds.is_empty() => {}
            rumours = listening.next(&clock) => keeper.look_into(&rumours, clock.now()),
            () = clock.pause(sleep) => {}
        }
    }
}

/// What the task keeps. However the task ends, with its runtime too and even before it began, that is lost: nothing renews
/// it any more.
pub(super) struct Kept(pub(super) Arc<Keeper>);

impl Drop for Kept {
    fn drop(&mut self) {
        for hold in self.0.take_all() {
            hold.lose(Loss::Shutdown);
        }
    }
}

/// One round of renewals: ask the store, tell each hold, schedule what comes next.
pub(super) async fn renew(
    keeper: &Keeper,
    backend: &dyn Backend,
    clock: &Clock,
    batch: &[Arc<Hold>],
    asked: Option<Duration>,
) -> Vec<Result<()>> {
    let sent = clock.now();
    let renewals: Vec<_> = batch.iter().map(|hold| hold.renewal(sent, asked)).collect();
    // A store's panic is that round's failure, not the end of all renewals.
    let answers = AssertUnwindSafe(backend.renew(&renewals)).catch_unwind().await.unwrap_or_default();
    let mut answers = answers.into_iter();
    let mut heard = Vec::with_capacity(batch.len());
    for hold in batch {
        let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
        if asked.is_none() {
            observe::heard(hold, &answer);
        }
        let result = hold.heard(sent, answer);
        let next = if result.is_ok() { hold.next_due(sent) } else { hold.retry_due(clock.now()) };
        if result.is_ok() {
            // One that failed stays due since when it was.
            hold.renewal_due.set(next);
        }
        keeper.postpone(hold, next);
        heard.push(result);
    }
    heard
}

/// Tells the store who holds and who waits. What fails is only not seen.
async fn announce(backend: &dyn Backend, who: &Who, signs: &[Sign]) {
    if let Ok(Err(error)) = AssertUnwindSafe(backend.announce(who, signs)).catch_unwind().await {
        tracing::debug!(%error, "presence was not told");
    }
}

/// Writes down what is over. A store's panic costs what was to be written, not the locks that are kept here.
async fn write_down(backend: &dyn Backend, names: BTreeMap<Key, Vec<Past>>) {
    if AssertUnwindSafe(history::write(backend, names)).catch_unwind().await.is_err() {
        tracing::debug!("holds are missing from the history");
    }
}

fn entry(hold: &Hold) -> (u64, u64) {
    (hold.due.load(Ordering::Relaxed), hold.spec.id.serial())
}

fn unanswered() -> Error {
    Error::new(ErrorKind::Internal, Operation::Renew, "the store gave no answer about this lock")
}
