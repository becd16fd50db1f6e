//! What happens between a user and a store: once, for every store.
//!
//! Reading order: [`acquire`] is one acquisition from the first try to a held lock ([`begin`] what of it is done on the spot, [`won`] until a guard has it), [`contend`] is the one wait
//! loop, [`hold`] is what a holder believes, [`keep`] is the one task that renews and notices loss, [`leave`] is
//! how a lock is given back, [`history`] is what is written down of it, [`observe`] shows it to whoever listens and [`measure`] counts it, [`janitor`] finishes what callers drop, [`presence`] tells others who holds and waits, [`rumour`] is what is heard of our own locks between renewals, [`gate`] lets one waiter of a process speak
//! for all, [`cohort`] hands a lock on within a process, [`throttle`] waits for a rate, [`proclaimed`] is what a leader says of itself, [`book`] is what the store keeps of a job and [`ledger`] reads and writes it, [`mint`] makes ids of a [`counter`], [`sighting`] is what time it is for all, [`time`] is all time.
//!
//! Nothing here is left to chance: every `select!` has an order and whoever is rung is rung in line, so that on a test's
//! clock the same calls give the same run, and a schedule that failed can be played again.

pub(crate) mod acquire;
mod begin;
pub(crate) mod book;
mod cohort;
mod contend;
pub(crate) mod counter;
pub(crate) mod farewell;
mod gate;
pub(crate) mod history;
pub(crate) mod hold;
mod janitor;
#[cfg(shuttle)]
mod jumps;
mod keep;
pub(crate) mod leave;
pub(crate) mod ledger;
#[cfg(feature = "metrics")]
pub(crate) mod measure;
#[cfg(not(feature = "metrics"))]
#[path = "unmeasured.rs"]
pub(crate) mod measure;
pub(crate) mod mint;
mod observe;
pub(crate) mod past;
mod presence;
pub(crate) mod proclaimed;
mod rumour;
mod sighting;
pub(crate) mod tally;
pub(crate) mod throttle;
pub mod time;
mod won;

use std::sync::Arc;

use tokio::{runtime::Handle, sync::Notify};

use self::{
    gate::Gate,
    hold::Hold,
    janitor::Janitor,
    keep::{Keeper, Kept},
    measure::Measures,
    tally::{Tally, Ticket},
    time::Clock,
};
use crate::{
    backend::Backend,
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimIds,
    sync::atomic::{AtomicBool, Ordering},
    who::Who,
};

/// One client's machinery: what its locks and guards share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
    pub(crate) who: Arc<Who>,
    pub(crate) ids: ClaimIds,
    pub(crate) measures: Measures,
    runtime: Handle,
    gate: Gate,
    /// The same for rate limiters: who waits for a limiter of a name does not wait for a lock of that name.
    limits: Gate,
    keeper: Arc<Keeper>,
    janitor: Janitor,
    /// Claims that wait, and first tries that are not answered yet.
    waiting: Tally,
    trying: Tally,
    /// So many may wait at a time.
    most_waiting: usize,
    /// Runs of jobs, until it is written down how they ended.
    running: Tally,
    /// Set once and for all; whoever waits for it is rung.
    closed: AtomicBool,
    closing: Notify,
}

impl Engine {
    /// Starts the keeper and the janitor on the current runtime.
    pub(crate) fn start(
        backend: Arc<dyn Backend>,
        clock: Clock,
        who: Arc<Who>,
        most_waiting: usize,
    ) -> Arc<Self> {
        let runtime = Handle::current();
        let keeper = Arc::new(Keeper::new(&backend.info().capabilities));
        runtime.spawn(keep::run(Kept(keeper.clone()), backend.clone(), clock.clone(), who.clone()));
        let janitor = Janitor::start(&runtime);
        let (ids, gate, waiting) = (ClaimIds::new(who.client), Gate::default(), Tally::default());
        let (closing, closed) = (Notify::new(), AtomicBool::new(false));
        Arc::new(Self {
            backend,
            clock,
            who,
            ids,
            measures: Measures::default(),
            runtime,
            gate,
            limits: Gate::default(),
            keeper,
            janitor,
            waiting,
            trying: Tally::default(),
            most_waiting,
            running: Tally::default(),
            closing,
            closed,
        })
    }

    /// Held locks, waiting claims and unfinished clean-ups.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.keeper.len(), self.waiting.len(), self.janitor.len())
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Counts as a run of a job that goes on: a shutdown waits for it to be written down.
    pub(crate) fn run_ticket(&self) -> Ticket {
        self.running.ticket()
    }

    /// Counts as one who waits, if there is room for one more.
    fn wait_ticket(&self) -> Result<Ticket> {
        self.waiting.ticket_within(self.most_waiting).ok_or_else(|| {
            let most = self.most_waiting;
            let message = format!(
                "{most} of this client wait already, and no more may; let fewer tasks wait at a time, or raise max_waiting"
            );
            Error::new(ErrorKind::Capacity, Operation::Acquire, message)
        })
    }

    pub(crate) async fn idle(&self) {
        self.janitor.idle().await;
    }

    pub(crate) fn refuse_if_closed(&self, operation: Operation) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) { Err(closed(operation)) } else { Ok(()) }
    }

    /// Completes when the client is shut down.
    pub(crate) async fn closing(&self) {
        let mut closing = std::pin::pin!(self.closing.notified());
        // Arm, then look: what was said in between rings no more.
        closing.as_mut().enable();
        if !self.closed.load(Ordering::SeqCst) {
            closing.await;
        }
    }

    /// Work to be polled in place, and finished in the background if its caller goes away.
    pub(crate) fn carry_on<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> janitor::Carried<'_, T> {
        self.janitor.in_place(Box::pin(future))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.keeper.close();
    }
}

fn closed(operation: Operation) -> Error {
    Error::new(ErrorKind::Closed, operation, "this client is shut down; connect a new one")
}

/// A hold and the claim behind it, shared by the guards of one owner.
pub(crate) type SharedHold = Arc<Hold>;
