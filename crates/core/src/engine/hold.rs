//! What a holder believes: until when, since which fence, and why no longer.
//!
//! Belief is decided by comparing the boot clock with a deadline, at the moment of asking, never by a flag that
//! somebody must set in time. Three states: *held*; in *doubt*, when a renewal is overdue but the lease still
//! runs; *lost*, when the lease ran out or the store said so. Lost is final.

use std::{
    future::poll_fn,
    sync::{Arc, OnceLock, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    Engine, keep,
    measure::{Due, Lead, Series},
    observe,
    time::Instant,
};
use crate::{
    backend::{Claim, ClaimSpec, Grant, Holds, Loss, Mode, Renew, Renewal},
    error::{Error, ErrorKind, Operation, Result},
    planted::{Bug, planted},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// Whether a lock is held, as its holder may believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Held, and renewed as it should be.
    Held,
    /// Still held, but a renewal is overdue: the lease will run out unless one succeeds.
    Doubt,
    /// Held no more.
    Lost,
}

/// What belief may fall short of a brief lease by, beyond its share.
const SHORTFALL: Duration = Duration::from_millis(5);

/// One acquisition that was won, for as long as any guard of it lives.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) engine: Arc<Engine>,
    pub(crate) spec: Arc<ClaimSpec>,
    /// The first of those it was granted; a guard that was handed the lock has a later one.
    pub(crate) fence: u64,
    pub(super) renews: bool,
    /// Where it is counted.
    pub(super) series: Series,
    pub(super) renewal_due: Due,
    pub(super) lead: Lead,
    /// How long it had to wait, and when the request that won was sent.
    pub(super) waited: Duration,
    pub(super) begun: Instant,
    /// The keeper has looked at it: it is no lock that comes and goes.
    aged: AtomicBool,
    /// No renewal may reach beyond this.
    limit: Option<Instant>,
    /// Until when we may believe, in nanoseconds of the boot clock. Only grows.
    deadline: AtomicU64,
    /// The longest lease that was granted, no longer than was asked for: a store may give less, and renewals keep to what it
    /// gives. Those that `max_hold` cuts short do not count, or renewals would come ever faster towards its end.
    lease: AtomicU64,
    doubt: AtomicBool,
    /// Somebody has a proof of it, by which the store would know the next holder too: it is not handed on.
    proved: AtomicBool,
    loss: OnceLock<Loss>,
    /// It was told how it ended.
    ended: AtomicBool,
    /// Rings when the deadline moves, when the lock is lost, and when a cohort has given it back.
    pub(super) told: Notify,
    holds: Mutex<Holds>,
    /// The claim, until it is withdrawn. One task at a time speaks through it.
    pub(super) claim: tokio::sync::Mutex<Option<Box<dyn Claim>>>,
    /// When the keeper looks at this hold next, and where it is among what is fresh: both belong to the keeper's lock.
    pub(super) due: AtomicU64,
    pub(super) place: AtomicUsize,
}

/// What of an acquisition's options outlives the winning of it.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    /// Renew the lease.
    pub(crate) renews: bool,
    /// Stop renewing after this long.
    pub(crate) max_hold: Option<Duration>,
    /// Where it is counted.
    pub(crate) series: Series,
}

impl Hold {
    /// A lock won by a request sent at `sent`.
    pub(super) fn new(
        engine: Arc<Engine>,
        spec: Arc<ClaimSpec>,
        keeping: &Keeping,
        claim: Box<dyn Claim>,
        grant: Grant,
        sent: Instant,
        waited: Duration,
    ) -> Arc<Self> {
        let limit = keeping.max_hold.map(|max_hold| sent.after(max_hold));
        let counted = if planted(Bug::DeadlineAtReply) { engine.clock.now() } else { sent };
        let (deadline, lease) = believed(counted, grant.granted, limit, spec.ttl);
        Arc::new(Self {
            engine,
            fence: grant.fence,
            renews: keeping.renews,
            series: keeping.series.clone(),
            renewal_due: Due::default(),
            lead: Lead::default(),
            waited,
            begun: sent,
            aged: AtomicBool::new(false),
            limit,
            deadline: AtomicU64::new(deadline),
            lease: AtomicU64::new(lease),
            doubt: AtomicBool::new(false),
            proved: AtomicBool::new(false),
            loss: OnceLock::new(),
            ended: AtomicBool::new(false),
            told: Notify::new(),
            holds: Mutex::new(Holds::first(spec.mode)),
            spec,
            claim: tokio::sync::Mutex::new(Some(claim)),
            due: AtomicU64::new(0),
            place: AtomicUsize::new(keep::NOWHERE),
        })
    }

    /// The keeper has looked at it.
    pub(super) fn age(&self) {
        self.aged.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_aged(&self) -> bool {
        self.aged.load(Ordering::Relaxed)
    }

    /// Somebody is given a proof of it.
    pub(crate) fn prove(&self) {
        self.proved.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_proved(&self) -> bool {
        self.proved.load(Ordering::SeqCst)
    }

    /// The state at this moment.
    pub(crate) fn state(&self) -> State {
        let now = self.engine.clock.now();
        if self.loss_at(now).is_some() {
            return State::Lost;
        }
        let overdue = self.renews && !self.at_limit() && now.until(self.deadline()) < self.lease() / 4;
        if self.doubt.load(Ordering::SeqCst) || overdue { State::Doubt } else { State::Held }
    }

    /// How the lock was lost, if it was by now.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.loss_at(self.engine.clock.now()).cloned()
    }

    /// How the lock was lost, if that was noticed. The clock is not asked.
    pub(super) fn known_loss(&self) -> Option<&Loss> {
        self.loss.get()
    }

    /// Whether its end is still to be told. Says so once: who lets go and who notices a loss may be two.
    pub(super) fn ends(&self) -> bool {
        !self.ended.swap(true, Ordering::SeqCst)
    }

    /// Whether its end was told.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// It is the lead of an election: whoever counts leaders counts it, until it is lost or given up.
    pub(crate) fn leads(&self) {
        observe::leads(self);
    }

    /// Completes when the lock is lost. Every poll compares the clock.
    pub(crate) async fn lost(&self) -> Loss {
        loop {
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            let loss = poll_fn(|context| match self.loss() {
                Some(loss) => Poll::Ready(Some(loss)),
                None => told.as_mut().poll(context).map(|()| None),
            });
            if let Some(loss) = loss.await {
                return loss;
            }
        }
    }

    /// Completes when the deadline has moved beyond `known`, or the lock is lost.
    pub(crate) async fn renewed(&self, known: Instant) -> Instant {
        loop {
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            if self.deadline() > known || self.loss().is_some() {
                return self.deadline();
            }
            told.await;
        }
    }

    /// Until when we may believe.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::SeqCst))
    }

    pub(crate) fn remaining(&self) -> Duration {
        let now = self.engine.clock.now();
        if self.loss_at(now).is_some() { Duration::ZERO } else { now.until(self.deadline()) }
    }

    /// Ends belief, once; whoever comes later finds the first reason.
    pub(super) fn lose(&self, loss: Loss) {
        if self.loss.set(loss).is_ok() {
            self.tell_loss();
        }
    }

    /// Ends belief if the lease ran out by now. Says whether that is news: then it is to be told, under no lock.
    pub(super) fn runs_out(&self, now: Instant) -> bool {
        let loss = || if self.at_limit() { Loss::MaxHold } else { Loss::Expired };
        now >= self.deadline() && self.loss.set(loss()).is_ok()
    }

    /// Tells whoever wants to know that it is lost.
    pub(super) fn tell_loss(&self) {
        self.told.notify_waiters();
        if let Some(loss) = self.loss.get() {
            observe::lost(self, loss);
        }
    }

    /// Whether it is lost by now. Tells nobody.
    pub(super) fn is_over(&self) -> bool {
        self.loss.get().is_some() || self.engine.clock.now() >= self.deadline()
    }

    /// Takes note of a renewal sent at `sent`. An error leaves the lease as it is, in doubt.
    pub(super) fn heard(&self, sent: Instant, answer: Result<Renewal>) -> Result<()> {
        match answer {
            Ok(Renewal::Renewed { granted }) => {
                self.believe(sent, granted);
                self.doubt.store(false, Ordering::SeqCst);
                self.told.notify_waiters();
                observe::renewed(self, "renewed");
                self.check(Operation::Renew)
            }
            Ok(Renewal::Lost(broken)) => {
                // One that crossed our own release finds nothing, and nothing was lost: what became of the lock is for
                // the answer to the release to say.
                let is_held = self.holds().total() > 0;
                if is_held {
                    observe::renewed(self, "lost");
                    self.lose(broken.into());
                }
                self.check(Operation::Renew)
            }
            Err(error) => {
                let is_first = !self.doubt.swap(true, Ordering::SeqCst);
                observe::renewal_failed(self, &error, is_first);
                Err(error.during(Operation::Renew).about(self.spec.key.name()))
            }
        }
    }

    /// An error if the lock is lost by now.
    pub(crate) fn check(&self, operation: Operation) -> Result<()> {
        self.loss_at(self.engine.clock.now());
        self.check_known(operation)
    }

    /// An error if it was noticed that the lock is lost. The clock is not asked.
    pub(super) fn check_known(&self, operation: Operation) -> Result<()> {
        match self.loss.get().cloned() {
            None => Ok(()),
            Some(loss) => Err(Error::from_loss(operation, loss).about(self.spec.key.name())),
        }
    }

    /// The renewal to send now: for `asked`, or the usual lease, but never beyond `max_hold`. One that is not to be renewed
    /// asks for what it has anyway, and so only whether it still has it.
    pub(super) fn renewal(&self, now: Instant, asked: Option<Duration>) -> Renew {
        let usual = if self.renews { self.spec.ttl } else { now.until(self.deadline()) };
        let ttl = asked.unwrap_or(usual);
        let ttl = self.limit.map_or(ttl, |limit| ttl.min(now.until(limit)));
        Renew { key: self.spec.key.clone(), id: self.spec.id, mode: self.spec.mode, ttl }
    }

    /// When the keeper should look next after a renewal sent at `sent`: to renew, or else to notice the end.
    pub(super) fn next_due(&self, sent: Instant) -> Instant {
        let deadline = self.deadline();
        if self.renews && !self.at_limit() { sent.after(self.lease() / 3).min(deadline) } else { deadline }
    }

    /// When to try again after a renewal that failed.
    pub(super) fn retry_due(&self, now: Instant) -> Instant {
        let pause = (self.lease() / 12).clamp(Duration::from_millis(10), Duration::from_secs(1));
        now.after(pause).min(self.deadline())
    }

    /// Enters a held lock once more. `None` if it is held no more at all: then it is to be acquired anew.
    pub(crate) fn enter(&self, mode: Mode) -> Option<Result<()>> {
        let mut holds = self.holds();
        if holds.total() == 0 {
            return None;
        }
        match mode {
            Mode::Exclusive if holds.exclusive == 0 => return Some(Err(upgrade())),
            Mode::Exclusive => holds.exclusive += 1,
            _ => holds.shared += 1,
        }
        Some(Ok(()))
    }

    /// Leaves once; says what is left.
    pub(super) fn exit(&self, mode: Mode) -> Holds {
        let mut holds = self.holds();
        match mode {
            Mode::Shared => holds.shared -= 1,
            _ => holds.exclusive -= 1,
        }
        *holds
    }

    /// How often it is held now.
    pub(super) fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the deadline, never backwards and never beyond `max_hold`.
    fn believe(&self, sent: Instant, granted: Duration) {
        let sent = if planted(Bug::DeadlineAtReply) { self.engine.clock.now() } else { sent };
        let (deadline, lease) = believed(sent, granted, self.limit, self.spec.ttl);
        self.lease.fetch_max(lease, Ordering::SeqCst);
        self.deadline.fetch_max(deadline, Ordering::SeqCst);
    }

    fn lease(&self) -> Duration {
        Duration::from_nanos(self.lease.load(Ordering::SeqCst))
    }

    /// How the lock was lost, if it was by then. The first to find out tells.
    fn loss_at(&self, now: Instant) -> Option<&Loss> {
        if self.loss.get().is_none() && self.runs_out(now) {
            self.tell_loss();
        }
        self.loss.get()
    }

    /// The lease reaches as far as `max_hold` allows, give or take what belief is shortened by.
    fn at_limit(&self) -> bool {
        self.limit.is_some_and(|limit| self.deadline().after(self.lease() / 20 + SHORTFALL) >= limit)
    }
}

/// Until when a grant may be believed, and the lease that renewals keep to.
fn believed(sent: Instant, granted: Duration, limit: Option<Instant>, asked: Duration) -> (u64, u64) {
    let lease = granted.min(asked).as_nanos().try_into().unwrap_or(u64::MAX);
    let deadline = sent.believing(granted);
    (limit.map_or(deadline, |limit| deadline.min(limit)).as_nanos(), lease)
}

fn upgrade() -> Error {
    let message =
        "this owner reads the lock already and would wait for itself to write; release the read first";
    Error::new(ErrorKind::WouldDeadlock, Operation::Reenter, message)
}
