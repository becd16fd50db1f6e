//! One acquisition, from the first try to a held lock or a clean retreat.
//!
//! What can be had on the spot is (`begin.rs`), and needs no future. Else the first try is polled in place: an uncontended
//! acquire pays no task. A claim that has to wait gets a task of
//! its own, and its caller holds only the end of a channel: dropping it is hanging up, and the task withdraws.
//! Whatever happens to a [`Contender`], its claim is either turned into a hold or withdrawn from the store.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle};
use tracing::Instrument;

use super::{
    Engine,
    begin::{Begun, begin},
    cohort::{Candidate, Heir, Turn, is_cohort},
    contend::{Contended, Contest, MARGIN, in_time},
    gate::{Place, Trying},
    hold::{Hold, Keeping},
    janitor::Janitor,
    leave,
    measure::Series,
    observe::{self, Asking},
    tally::Ticket,
    time::Instant,
    won::Won,
};
use crate::{
    backend::{Attempt, Busy, Capabilities, Claim, ClaimSpec, Grant, Life, Loss, Mode, record::WAIT_LEASE},
    error::{Error, ErrorKind, Operation, Result, Retry},
    planted::{Bug, planted},
};

pub(crate) use super::{begin::acquire_now, contend::Patience};

/// Everything an acquisition is asked for with.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) spec: Arc<ClaimSpec>,
    pub(crate) keeping: Keeping,
    pub(crate) patience: Patience,
}

/// How an acquisition ended without an error.
#[derive(Debug)]
pub(crate) enum Acquired {
    /// Held. Whoever drops this unseen must still leave it; see [`Won`].
    Held(Won),
    /// Somebody else has it.
    Busy(Busy),
}

/// Acquires as ordered. Errors do not know the name yet: whoever asked does.
pub(crate) async fn acquire(engine: &Arc<Engine>, order: Order) -> Result<Acquired> {
    // A store that answers on the spot never makes us wait; a task that only takes and gives must still let others run.
    tokio::task::consume_budget().await;
    match begin(engine, order) {
        Begun::Won(won) => Ok(Acquired::Held(won)),
        // Apart, as everything rare here: a future is moved about by those who await it, with all the room it may need.
        begun => Box::pin(go_on(engine, begun)).await,
    }
}

/// Goes on where nothing was to be had on the spot.
async fn go_on(engine: &Engine, begun: Begun) -> Result<Acquired> {
    let asks = |spec: &ClaimSpec, series: &Series| Asking::begin(&engine.clock, spec, series.clone());
    let (asking, tried) = match begun {
        Begun::Won(won) => return Ok(Acquired::Held(won)),
        Begun::Untried(contender) => {
            let asking = asks(&contender.spec, &contender.keeping.series);
            (asking, contender.try_first(engine).await)
        }
        Begun::Busy(contender, busy) => {
            (asks(&contender.spec, &contender.keeping.series), Ok(First::Busy(contender, busy)))
        }
        Begun::Failed(spec, series, error) => (asks(&spec, &series), Err(error)),
    };
    let answer = match tried {
        Ok(First::Held(won)) => Ok(Acquired::Held(won)),
        Ok(First::Busy(contender, busy)) if contender.patience == Patience::None => {
            engine.carry_on(contender.retreat()).await;
            Ok(Acquired::Busy(busy.unwrap_or_default()))
        }
        Ok(First::Busy(contender, busy)) => contender.stand(busy).instrument(asking.span()).await,
        Err(error) => Err(error),
    };
    asking.answered(&answer);
    answer
}

/// Keeps what was won by a request sent at `sent`. A client that was shut down meanwhile holds nothing any more.
pub(super) fn kept(hold: Arc<Hold>, sent: Instant) -> Result<Won, (Arc<ClaimSpec>, Error)> {
    let fence = hold.fence;
    if is_kept(&hold.spec) && !hold.engine.keeper.keep(&hold, sent) {
        hold.lose(Loss::Shutdown);
        let spec = hold.spec.clone();
        drop(Won::new(hold, fence));
        return Err((spec, super::closed(Operation::Acquire)));
    }
    if is_cohort(&hold.spec) {
        hold.engine.gate.passes(&hold);
    }
    // Whatever a subscriber does, the lock is somebody's to give back by now.
    let won = Won::new(hold, fence);
    won.hold().map(observe::granted);
    Ok(won)
}

/// A claim that is neither won nor withdrawn yet.
pub(super) struct Contender {
    engine: Arc<Engine>,
    spec: Arc<ClaimSpec>,
    keeping: Keeping,
    patience: Patience,
    /// When it began to wait, if it had to.
    since: Option<Instant>,
    /// Gone once it is won or withdrawn.
    pub(super) claim: Option<Box<dyn Claim>>,
}

pub(super) enum First {
    Held(Won),
    /// Not won, with what the store had to say, if it said anything.
    Busy(Box<Contender>, Option<Busy>),
}

impl Contender {
    pub(super) fn new(engine: &Arc<Engine>, order: Order) -> Self {
        let claim = engine.backend.claim(order.spec.clone());
        Self::with(engine, order, claim)
    }

    pub(super) fn with(engine: &Arc<Engine>, order: Order, claim: Box<dyn Claim>) -> Self {
        let Order { spec, keeping, patience } = order;
        Self { engine: engine.clone(), spec, keeping, patience, since: None, claim: Some(claim) }
    }

    async fn try_first(self, engine: &Engine) -> Result<First> {
        let patience = self.patience;
        let can_wait = patience == Patience::Forever && is_gated(&self.spec);
        let trying = can_wait.then(|| Trying::begin(&self.engine, &self.spec.key));
        if let Some(None) = trying {
            // Whoever of us asks first asks for all who can wait: the others would only be told that it is busy. Those
            // whose patience ends ask for themselves: it may end before the one who asks is answered.
            return Ok(First::Busy(Box::new(self), None));
        }
        let first = engine.carry_on(self.first_try(trying.flatten()));
        match patience {
            // A store that does not answer must not keep us beyond our patience; the request is finished in the
            // background, and what it won is given back.
            Patience::Until(_) => {
                let first = Box::pin(patience.and_a_little().bear(&engine.clock, first)).await;
                first.unwrap_or_else(|| Err(unanswered()))
            }
            Patience::None | Patience::Forever => first.await,
        }
    }

    /// One try, not waiting.
    async fn first_try(mut self, _trying: Option<Trying>) -> Result<First> {
        let _ticket = self.engine.trying.ticket();
        let sent = self.engine.clock.now();
        let answer = self.claim().attempt().await;
        let answer = answer.and_then(|attempt| in_time(attempt, sent, self.engine.clock.now()));
        self.tried(sent, answer)
    }

    /// What may pass is left to the wait loop, if there is patience for one; on any other error the claim is
    /// withdrawn as this is dropped.
    pub(super) fn tried(mut self, sent: Instant, answer: Result<Attempt>) -> Result<First> {
        match answer {
            Ok(Attempt::Granted(grant)) => self.hold(grant, sent).map(First::Held),
            Ok(Attempt::Busy(busy)) => Ok(First::Busy(Box::new(self), Some(busy))),
            Err(error) if self.patience == Patience::None || error.retry() == Retry::No => Err(error),
            Err(_) => Ok(First::Busy(Box::new(self), None)),
        }
    }

    /// Moves the claim into a task of its own and awaits its answer; going away is hanging up.
    async fn stand(self, busy: Option<Busy>) -> Result<Acquired> {
        let engine = self.engine.clone();
        let patience = self.patience.and_a_little();
        let ticket = match engine.wait_ticket() {
            Ok(ticket) => ticket,
            Err(error) => {
                patience.bear(&engine.clock, engine.carry_on(self.retreat())).await;
                return Err(error);
            }
        };
        let (answer, answered) = oneshot::channel();
        let task = engine.runtime.spawn(self.live(busy, ticket, answer).in_current_span());
        let mut standing = Standing { janitor: &engine.janitor, task: Some(task) };
        let closing = async {
            engine.closing().await;
            engine.clock.pause(MARGIN).await;
        };
        // Whatever the store does, the caller is answered: when its patience ends, and when the client is shut down.
        let answer = tokio::select! {
            biased;
            answer = patience.bear(&engine.clock, answered) => answer.ok_or_else(unanswered)?,
            () = closing => return Err(super::closed(Operation::Acquire)),
        };
        standing.task = None;
        answer
            .unwrap_or_else(|_| Err(Error::new(ErrorKind::Closed, Operation::Acquire, "the runtime is gone")))
    }

    /// The life of a claim that has to wait, in its own task.
    async fn live(
        mut self,
        busy: Option<Busy>,
        ticket: Ticket,
        mut answer: oneshot::Sender<Result<Acquired>>,
    ) {
        let engine = self.engine.clone();
        let since = *self.since.insert(engine.clock.now());
        engine.keeper.stands(&self.spec, None, since);
        let outcome = {
            let mut hung_up = std::pin::pin!(answer.closed());
            self.stand_in_line(busy, &mut hung_up).await
        };
        let is_won = self.claim.is_none();
        if !is_won || !is_kept(&self.spec) {
            engine.keeper.stands_no_more(self.spec.id);
        }
        // Nothing of a claim that did not win is left in the store once its caller is told.
        self.retreat().await;
        drop(ticket);
        // With nobody there the answer comes back and is dropped, which gives a won lock back.
        drop(answer.send(outcome));
    }

    /// Waits for our turn among the waiters of this process, then contends at the store.
    async fn stand_in_line(
        &mut self,
        busy: Option<Busy>,
        hung_up: &mut (impl Future<Output = ()> + Send + Unpin),
    ) -> Result<Acquired> {
        let engine = self.engine.clone();
        let patience = self.patience;
        if !is_gated(&self.spec) {
            let contended = self.contend(None, &|_| {}, hung_up).await?;
            return self.came_of_it(contended);
        }
        let (candidate, handed) = Candidate::of(&self.spec, self.keeping.renews).unzip();
        let place = engine.gate.join_as(&self.spec.key, busy, candidate);
        let heir = handed.map(|handed| Heir::new(&place, &self.spec, self.keeping.renews, handed));
        let _turn = tokio::select! {
            biased;
            () = &mut *hung_up => return Ok(Acquired::Busy(Busy::default())),
            () = engine.closing() => return Err(super::closed(Operation::Acquire)),
            turn = patience.bear(&engine.clock, turn(&place, heir)) => match turn {
                Some(Some(Turn::Contend(turn))) => turn,
                Some(Some(Turn::Handed(won))) => return Ok(Acquired::Held(won)),
                _ => return engine.gate.line(&self.spec.key).map(Acquired::Busy).ok_or_else(unanswered),
            },
        };
        let told = |busy: Option<&Busy>| place.told(busy, engine.clock.now());
        let contended = self.contend(place.unanswered(), &told, hung_up).await?;
        // While it is still our turn: the next in line must find that a cohort has the lock, or it asks the store.
        self.came_of_it(contended)
    }

    /// What a contest comes to for whoever asked.
    fn came_of_it(&mut self, contended: Contended) -> Result<Acquired> {
        match contended {
            Contended::Won(grant, sent) => self.hold(grant, sent).map(Acquired::Held),
            Contended::Busy(busy) => Ok(Acquired::Busy(busy)),
            Contended::HungUp => Ok(Acquired::Busy(Busy::default())),
        }
    }

    async fn contend(
        &mut self,
        unanswered: Option<Instant>,
        told: &(dyn Fn(Option<&Busy>) + Send + Sync),
        hung_up: &mut (impl Future<Output = ()> + Send + Unpin),
    ) -> Result<Contended> {
        let engine = self.engine.clone();
        let (patience, bears) = (self.patience, self.spec.ttl);
        Contest { engine: &engine, patience, bears, unanswered, told }.run(self.claim(), hung_up).await
    }

    pub(super) fn claim(&mut self) -> &mut dyn Claim {
        self.claim.as_deref_mut().expect("a contender has its claim until it is won or withdrawn")
    }

    /// Turns the claim into a hold, and keeps it.
    fn hold(&mut self, grant: Grant, sent: Instant) -> Result<Won> {
        let claim = self.claim.take().expect("a contender has its claim until it is won or withdrawn");
        let waited = self.since.map_or(Duration::ZERO, |since| since.until(sent));
        let (engine, spec) = (self.engine.clone(), self.spec.clone());
        let hold = Hold::new(engine, spec, &self.keeping, claim, grant, sent, waited);
        kept(hold, sent).map_err(|(_, error)| error)
    }

    /// Removes what the claim may have left in the store. What cannot be removed now, the janitor goes on with.
    async fn retreat(mut self) {
        if let Some(claim) = &mut self.claim
            && claim.release().await.is_ok()
        {
            self.claim = None;
        }
    }
}

/// Our turn in the line: to contend, or in a cohort the lock itself.
async fn turn(place: &Place<'_>, heir: Option<Heir<'_>>) -> Option<Turn> {
    match heir {
        Some(heir) => heir.turn().await,
        None => place.turn().await.map(Turn::Contend),
    }
}

/// A contender that goes away with its claim has it withdrawn, wherever it was dropped.
impl Drop for Contender {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take().filter(|_| !planted(Bug::CancelForgets)) {
            let engine = &self.engine;
            // It may have a place in line, which lasts longer than a short lease.
            let until = engine.clock.now().after(self.spec.ttl.max(WAIT_LEASE));
            engine.janitor.carry(Box::pin(leave::release_until(engine.clock.clone(), claim, until)));
        }
    }
}

/// The caller's end of a claim that waits. Dropped unanswered, it leaves the claim's task to the janitor's care, so
/// that a client is idle only when that task is through.
struct Standing<'a> {
    janitor: &'a Janitor,
    task: Option<JoinHandle<()>>,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.janitor.carry(Box::pin(async move { drop(task.await) }));
        }
    }
}

/// The store said nothing for as long as we were ready to wait.
fn unanswered() -> Error {
    let message = "the store did not answer in time; nothing is held";
    Error::new(ErrorKind::Unavailable, Operation::Acquire, message)
}

/// Whether a lock won this way is this client's to keep: an open latch is nobody's, a ticket its bearer's.
fn is_kept(spec: &ClaimSpec) -> bool {
    spec.mode != Mode::Open && spec.life == Life::Session
}

/// Whether waiters of this sort stand behind each other within the process.
pub(super) fn is_gated(spec: &ClaimSpec) -> bool {
    spec.mode == Mode::Exclusive && (!spec.fair || is_cohort(spec))
}

/// Refuses what the store cannot do, before anything is sent.
pub(super) fn fits(spec: &ClaimSpec, store: &Capabilities) -> Result<()> {
    let lacks = match spec.mode {
        Mode::Shared if !store.shared => Some("shared locks"),
        Mode::Permits { .. } if !store.permits => Some("semaphores"),
        Mode::Open if !store.latch => Some("latches"),
        _ if spec.fair && !store.fair => Some("a fair line"),
        _ if spec.life == Life::Detached && !store.detached => Some("tickets"),
        _ if is_cohort(spec) && !store.cohort => Some("cohorts"),
        _ => None,
    };
    if let Some(what) = lacks {
        let message = format!("this store has no {what}; see the table of stores");
        return Err(Error::new(ErrorKind::Unsupported, Operation::Acquire, message));
    }
    fits_ttl(spec.ttl, store)
}

/// Refuses a lease the store cannot give.
pub(crate) fn fits_ttl(ttl: Duration, store: &Capabilities) -> Result<()> {
    let Capabilities { min_ttl, max_ttl, .. } = *store;
    if (min_ttl..=max_ttl).contains(&ttl) {
        return Ok(());
    }
    let message = format!("the ttl is {ttl:?}; this store takes {min_ttl:?} to {max_ttl:?}");
    Err(Error::config(Operation::Acquire, message))
}
