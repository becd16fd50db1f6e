//! One acquisition at one member.
//!
//! A seat is handed from request to request: whoever speaks to the member has it, and nobody else can meanwhile. So
//! requests of one acquisition reach a member one after the other, in the order they were made, though nobody waits for
//! those of a member that is slow.
//!
//! An acquisition that lost a vote *steps back*: it gives back by its id what it was granted and comes again later by
//! the same id. Only when it is over does it *leave*, which also defeats requests that are still on their way. If the
//! answer to a step back is lost, that request may still arrive and take away what was won meanwhile: the seat is then
//! *tainted*, and what the member says of this acquisition counts for nothing until that cannot be any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    backend::{Attempt, Backend, Claim, ClaimSpec, Holds, Release, Renewal},
    error::{Error, ErrorKind, Operation, Result},
    time::{Clock, Instant},
};

/// A request whose answer was lost has arrived by then, or never will.
const IN_FLIGHT: Duration = Duration::from_secs(120);

/// What one acquisition has at one member.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and they go together in every way"
)]
pub(super) struct Seat {
    backend: Arc<dyn Backend>,
    spec: Arc<ClaimSpec>,
    claim: Box<dyn Claim>,
    /// The member said that it is ours, and has not been told otherwise.
    granted: bool,
    /// It may be ours: an answer is missing.
    unsure: bool,
    /// The claim in hand has a request that was never answered.
    unknown: bool,
    /// An earlier claim with such a request: its release keeps that request from winning late.
    late: Option<Box<dyn Claim>>,
    /// The claim's bell is set up, as far as it can be.
    pub(super) armed: bool,
    taint: Taint,
    /// It has left, and this is what the member said.
    left: Option<Left>,
}

/// How leaving went.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pub(super) was_granted: bool,
    pub(super) release: Release,
}

/// A seat and what was said at it.
pub(super) type Said<T> = (Box<Seat>, T);

#[expect(
    clippy::unnecessary_box_returns,
    reason = "a seat is handed on with every request, and stays where it is"
)]
impl Seat {
    pub(super) fn new(backend: Arc<dyn Backend>, spec: Arc<ClaimSpec>, taint: Taint) -> Box<Self> {
        let claim = backend.claim(spec.clone());
        let (granted, unsure, unknown, armed) = Default::default();
        Box::new(Self {
            backend,
            spec,
            claim,
            granted,
            unsure,
            unknown,
            late: None,
            armed,
            taint,
            left: None,
        })
    }

    /// The same after its predecessor was lost with a request under way: anything may be at the member.
    pub(super) fn after_loss(backend: Arc<dyn Backend>, spec: Arc<ClaimSpec>, taint: Taint) -> Box<Self> {
        let mut seat = Self::new(backend, spec, taint);
        seat.unsure = true;
        seat
    }

    /// One try. If it was `given_up` by the time of the answer, what it won is given back at once.
    pub(super) async fn attempt(mut self: Box<Self>, given_up: GivenUp) -> Said<Result<Attempt>> {
        self.left = None;
        if self.taint.is_there() {
            return (self, Err(tainted()));
        }
        let answer = self.claim.attempt().await;
        self.note(&answer);
        if given_up.is_so() {
            self.step_back().await;
        }
        (self, answer)
    }

    fn note(&mut self, answer: &Result<Attempt>) {
        match answer {
            Ok(Attempt::Granted(_)) => (self.granted, self.unsure) = (true, false),
            Ok(Attempt::Busy(_)) => (self.granted, self.unsure) = (false, false),
            Err(error) if error.kind() == ErrorKind::Indeterminate => {
                (self.unsure, self.unknown) = (true, true);
            }
            Err(_) => {}
        }
    }

    /// Gives back what a lost vote left here.
    pub(super) async fn stepped_back(mut self: Box<Self>) -> Said<()> {
        self.step_back().await;
        (self, ())
    }

    async fn step_back(&mut self) {
        if !self.granted && !self.unsure {
            return;
        }
        // By its id: the release of the claim would forbid the id for a while, and it is to come again.
        self.taint.begin();
        let released = self.backend.release(&self.spec.key, self.spec.id, self.spec.mode).await;
        (self.granted, self.unsure) = (false, released.is_err());
        if released.is_err_and(|error| error.kind() == ErrorKind::Indeterminate) {
            self.taint.end_unknown();
        } else {
            self.taint.end();
        }
        // The store may have put the claim's bell away.
        let old = std::mem::replace(&mut self.claim, self.backend.claim(self.spec.clone()));
        self.armed = false;
        if std::mem::take(&mut self.unknown) {
            self.late = Some(old);
        }
    }

    pub(super) async fn raise(mut self: Box<Self>, fence: u64) -> Said<Result<Renewal>> {
        let answer = self.claim.raise(fence).await;
        (self, answer)
    }

    pub(super) async fn recount(mut self: Box<Self>, holds: Holds) -> Said<Result<Renewal>> {
        let answer = self.claim.recount(holds).await;
        (self, answer)
    }

    /// Asks a member again that does not have a lock which a majority has. One whose counter cannot be raised to the
    /// lock's fence is of no use: the next renewal tries it again.
    pub(super) async fn mend(mut self: Box<Self>, fence: u64, holds: Option<Holds>) -> Said<()> {
        if self.left.is_some() || self.taint.is_there() {
            return (self, ());
        }
        // Until it is whole it may be given back: a renewal that finds it meanwhile finds nothing that lasts.
        self.taint.begin();
        let answer = self.claim.attempt().await;
        self.note(&answer);
        let mut is_whole = matches!(answer, Ok(Attempt::Granted(_)));
        if is_whole {
            is_whole = matches!(self.claim.raise(fence).await, Ok(Renewal::Renewed { .. }));
        }
        if let Some(holds) = holds.filter(|_| is_whole) {
            is_whole = matches!(self.claim.recount(holds).await, Ok(Renewal::Renewed { .. }));
        }
        if is_whole || !self.granted && !self.unsure {
            self.taint.end();
        } else {
            self.step_back().await;
        }
        (self, ())
    }

    /// Removes every trace, for good.
    pub(super) async fn leave(mut self: Box<Self>) -> Said<Result<Left>> {
        if let Some(left) = self.left.clone() {
            return (self, Ok(left));
        }
        let left = self.remove().await;
        if let Ok(left) = &left {
            self.left = Some(left.clone());
        }
        (self, left)
    }

    async fn remove(&mut self) -> Result<Left> {
        let was_granted = self.granted;
        let mut release = self.claim.release().await?;
        if let Some(late) = &mut self.late {
            let also = late.release().await?;
            self.late = None;
            release = if also == Release::Released { also } else { release };
        }
        if self.unsure {
            let also = self.backend.release(&self.spec.key, self.spec.id, self.spec.mode).await?;
            release = if also == Release::Released { also } else { release };
        }
        (self.granted, self.unsure, self.unknown) = Default::default();
        Ok(Left { was_granted, release })
    }

    /// Leaves, trying again while that can still matter.
    pub(super) async fn leave_until(mut self: Box<Self>, clock: Clock, until: Instant) -> Said<()> {
        let mut pause = Duration::from_millis(50);
        loop {
            let left;
            (self, left) = self.leave().await;
            if left.is_ok() || clock.now() >= until {
                return (self, ());
            }
            clock.pause(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Completes when another try at this member is worth making.
    pub(super) async fn changed(&mut self) -> Result<()> {
        self.claim.changed().await
    }
}

/// Whether a step back may be under way.
#[derive(Clone, Debug)]
pub(super) struct Taint {
    clock: Clock,
    parts: Arc<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    /// One is.
    under_way: AtomicBool,
    /// One was lost, and may still arrive until then, in nanoseconds of the clock. An answer to a later one does not
    /// mean that this one has arrived.
    until: AtomicU64,
    /// How often one began.
    turns: AtomicU64,
}

impl Taint {
    pub(super) fn none(clock: Clock) -> Self {
        Self { clock, parts: Arc::default() }
    }

    fn begin(&self) {
        self.parts.turns.fetch_add(1, Ordering::SeqCst);
        self.parts.under_way.store(true, Ordering::SeqCst);
    }

    fn end(&self) {
        self.parts.under_way.store(false, Ordering::SeqCst);
    }

    fn end_unknown(&self) {
        self.parts.until.store(self.clock.now().after(IN_FLIGHT).as_nanos(), Ordering::SeqCst);
        self.end();
    }

    /// What an answer must find again to count; `None` if none would.
    pub(super) fn turn(&self) -> Option<u64> {
        (!self.is_there()).then(|| self.parts.turns.load(Ordering::SeqCst))
    }

    fn is_there(&self) -> bool {
        self.parts.under_way.load(Ordering::SeqCst)
            || self.parts.until.load(Ordering::SeqCst) > self.clock.now().as_nanos()
    }
}

fn tainted() -> Error {
    let message =
        "an earlier release of this acquisition may still be on its way to the member; try again later";
    Error::new(ErrorKind::Unavailable, Operation::Acquire, message)
}

/// Whether the round that a try belongs to was given up.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub(super) fn give_up(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_so(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
