//! One member of a fleet that is ready for a job: it waits for a slot, stands in line for the lock, and runs the slot if the
//! ledger gives it to this one.
//!
//! The order is what makes a slot run once. The lock comes first, so that few write at a time; under it the clock and the
//! book are read anew, and the slot is taken by a compare-and-set. Who wins that write runs, and nobody else, whatever they
//! believe of the lock.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use leasehold_schedule::Slot;

use super::{
    Guard, Job, Outcome,
    run::{BoxedWork, Performed, Run, Turn, ended},
};
use crate::{
    engine::{
        Engine,
        book::{Book, Rules, Verdict},
        ledger::{Edit, Ledger},
        past::{Ended, Start},
        time::Instant,
    },
    error::{ErrorKind, Operation, Result, Retry},
    sync::atomic::Ordering,
};

/// The longest time without a look at the clock and the book: either may have been changed.
const LOOK: Duration = Duration::from_secs(60);

/// The shortest pause between two looks.
const GRAIN: Duration = Duration::from_millis(1);

/// The shortest stand in line.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// How long to leave a store alone that failed.
const BEAR: Duration = Duration::from_secs(1);

/// One member of the fleet.
#[derive(Debug)]
pub(super) struct Fleet {
    job: Job,
    rules: Rules,
    engine: Arc<Engine>,
    ledger: Ledger,
}

impl Fleet {
    pub(super) fn new(job: &Job, rules: Rules) -> Result<Self> {
        let engine = job.lock.client().engine().clone();
        let ledger = Ledger::of(&engine, &job.lock.key()?);
        Ok(Self { job: job.clone(), rules, engine, ledger })
    }

    /// Runs slots until the client is shut down.
    pub(super) async fn run<T, E, F>(&self, work: F) -> Result<()>
    where
        E: fmt::Display,
        F: AsyncFn(&Run) -> Result<T, E>,
    {
        while let Some(run) = self.next_unless_closed().await? {
            // How it ended is in the book and in the log.
            drop(self.perform(run, &work).await);
        }
        Ok(())
    }

    /// The same by work that is not known by its type. The compiler sees that this can be sent, whatever the work borrows.
    pub(super) async fn run_boxed(&self, work: &BoxedWork) -> Result<()> {
        while let Some(run) = self.next_unless_closed().await? {
            let begun = self.engine.clock.now();
            let performed = self.watch(&run, async { work(&run).await }).await;
            let ended = ended(&run, &performed);
            self.conclude(run, begun, ended).await;
        }
        Ok(())
    }

    /// A slot that falls to us, bearing with a store that fails; nothing once the client is shut down.
    async fn next_unless_closed(&self) -> Result<Option<Run>> {
        loop {
            match self.next().await {
                Ok(run) => return Ok(Some(run)),
                Err(error) if error.kind() == ErrorKind::Closed => return Ok(None),
                // A lock that was lost on the way is no reason to give up the next slot.
                Err(error) if error.retry() == Retry::No && error.kind() != ErrorKind::Lost => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(job = self.job.name(), %error, "trying again");
                    self.sleep_until(self.engine.clock.now().after(BEAR)).await;
                }
            }
        }
    }

    /// Waits for a slot that falls to us.
    pub(super) async fn next(&self) -> Result<Run> {
        loop {
            self.engine.refuse_if_closed(Operation::Job)?;
            self.adopt().await?;
            let now = self.ledger.sight().await?;
            let book = self.ledger.read().await?.unwrap_or_default();
            if self.note_if_forgotten(&book) {
                self.sleep_until(now.heard).await;
                continue;
            }
            match book.verdict(&self.rules, now.time) {
                Verdict::Due(slot) => {
                    if let Some(run) = self.compete(slot, now.time).await? {
                        return Ok(run);
                    }
                }
                Verdict::Later(until) | Verdict::Resting(until) => {
                    if let Some(ahead) = book.ahead(now.time) {
                        tracing::warn!(
                            job = self.job.name(),
                            ?ahead,
                            "the last slot is still to come: was a clock wrong? `leasehold job resume --from-now` does not wait"
                        );
                    }
                    self.sleep_until(now.instant_of(until)).await;
                }
                Verdict::Paused(_) => self.sleep_until(now.instant_of(self.after(now.time))).await,
            }
        }
    }

    /// Takes a slot that is due at this moment, if nobody else has.
    pub(super) async fn now(&self) -> Result<Turn<Run>> {
        self.adopt().await?;
        match self.job.held_lock().attempt().await? {
            Outcome::Held(guard) => self.take(guard).await,
            Outcome::Busy(busy) => Ok(Turn::Busy(busy)),
        }
    }

    /// Does the work and writes down how it ended, before the lock passes on.
    pub(super) async fn perform<T, E, F>(&self, run: Run, work: F) -> Performed<T, E>
    where
        E: fmt::Display,
        F: AsyncFnOnce(&Run) -> Result<T, E>,
    {
        let begun = self.engine.clock.now();
        let performed = self.watch(&run, async { work(&run).await }).await;
        let ended = ended(&run, &performed);
        self.conclude(run, begun, ended).await;
        performed
    }

    /// Does the work, as long as it is ours to do. A panic is one run's and not the member's, who goes on to the next.
    async fn watch<T, E>(&self, run: &Run, work: impl Future<Output = Result<T, E>>) -> Performed<T, E> {
        let work = AssertUnwindSafe(work).catch_unwind();
        let done = if self.job.finishes {
            if run.check().is_err() {
                // Between the lock and here it was lost: nothing was begun that would have to be finished.
                return Performed::Lost(run.lost().await);
            }
            work.await
        } else {
            tokio::select! {
                biased;
                loss = run.lost() => return Performed::Lost(loss),
                done = work => done,
            }
        };
        done.map_or_else(Performed::Panicked, Performed::Finished)
    }

    /// Writes down how it ended, and gives the lock back.
    async fn conclude(&self, run: Run, begun: Instant, ended: Ended) {
        let (name, took) = (self.job.name(), begun.until(self.engine.clock.now()));
        if ended != Ended::Done {
            tracing::warn!(job = name, slot = %run.slot, ?ended, "a run did not end well");
        }
        let id = run.guard.id();
        let edit = |book: &mut Book, _| {
            if book.end(id, took, ended.clone()) { Edit::Write(()) } else { Edit::Leave(()) }
        };
        if let Err(error) = self.ledger.change(edit).await {
            tracing::warn!(job = name, slot = %run.slot, %error, "how a run ended is not written down");
        }
        self.release(run.guard).await;
    }

    /// Gives the lock back. If it is lost, or is given back later in the background, that changes nothing for the job.
    async fn release(&self, guard: Guard) {
        if let Err(error) = guard.release().await {
            tracing::debug!(job = self.job.name(), %error, "release after a slot");
        }
    }

    /// Makes the job known, with our schedule: once, so that two who come with different ones do not take turns at it.
    async fn adopt(&self) -> Result<()> {
        let Some(schedule) = &self.rules.schedule else { return Ok(()) };
        if self.job.known.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.ledger
            .change(|book, now| {
                let before = book.clone();
                book.adopt(schedule, now);
                if *book == before { Edit::Leave(()) } else { Edit::Write(()) }
            })
            .await?;
        self.job.known.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Whether the store has lost what it knew of the job: then it is to be made known again.
    fn note_if_forgotten(&self, book: &Book) -> bool {
        let is_forgotten = self.rules.schedule.is_some() && book.last.is_none();
        if is_forgotten {
            tracing::warn!(
                job = self.job.name(),
                "the store has forgotten this job; it is taken for a new one"
            );
            self.job.known.store(false, Ordering::SeqCst);
        }
        is_forgotten
    }

    /// Stands in line for this slot, no longer than it is the latest one.
    async fn compete(&self, slot: Slot, now: Duration) -> Result<Option<Run>> {
        let asked = self.engine.clock.now();
        let begin = asked.after(self.rules.jitter.mul_f64(chance()));
        while self.engine.clock.now() < begin {
            self.engine.refuse_if_closed(Operation::Job)?;
            self.sleep_until(begin).await;
        }
        let now = now.saturating_add(asked.until(self.engine.clock.now()));
        let wait = self.after(slot.since_1970().max(now)).saturating_sub(now).clamp(LEAST_WAIT, LOOK);
        let lock = self.job.held_lock().wait(wait);
        let Some(guard) = lock.try_acquire().await? else { return Ok(None) };
        match self.take(guard).await {
            Ok(Turn::Ran(run)) => Ok(Some(run)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Lost => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the slot that is due, now that the lock is ours: the write decides. If it is not ours the lock is given back.
    async fn take(&self, guard: Guard) -> Result<Turn<Run>> {
        let (id, fence, who) = (guard.id(), guard.fence(), self.engine.who.clone());
        // Before the guard is asked below: a shutdown ends it first and counts us then, so that none overlooks the other.
        let ticket = self.engine.run_ticket();
        let taken = self
            .ledger
            .change(|book, now| {
                if let Some(running) = book.running.as_ref().filter(|running| running.start.id == id) {
                    // The answer to our write was lost, or too few had it: once more, so that it counts.
                    return Edit::Write(Ok(Turn::Ran(running.slot)));
                }
                self.note_if_forgotten(book);
                match book.verdict(&self.rules, now) {
                    Verdict::Due(slot) => {
                        // What takes long may outlast the lock: then the slot is for whoever has it now.
                        if let Err(lost) = guard.check() {
                            return Edit::Leave(Err(lost));
                        }
                        book.begin(&self.rules, slot, Start { id, fence, who: (*who).clone(), at: now });
                        Edit::Write(Ok(Turn::Ran(slot)))
                    }
                    Verdict::Later(_) => Edit::Leave(Ok(Turn::NotDue(book.next(now)))),
                    Verdict::Resting(until) => Edit::Leave(Ok(Turn::Resting(until))),
                    Verdict::Paused(paused) => Edit::Leave(Ok(Turn::Paused(paused))),
                }
            })
            .await?;
        let other = match taken {
            Ok(Turn::Ran(slot)) => return Ok(Turn::Ran(Run { slot, guard, _ticket: ticket })),
            Ok(Turn::Busy(busy)) => Ok(Turn::Busy(busy)),
            Ok(Turn::NotDue(next)) => Ok(Turn::NotDue(next)),
            Ok(Turn::Resting(until)) => Ok(Turn::Resting(until)),
            Ok(Turn::Paused(paused)) => Ok(Turn::Paused(paused)),
            Err(lost) => Err(lost),
        };
        self.release(guard).await;
        other
    }

    /// When the next slot after this moment is.
    fn after(&self, time: Duration) -> Duration {
        let next = self.rules.schedule.as_ref().and_then(|it| it.next_after(Slot::from_secs(time.as_secs())));
        next.map_or(Duration::MAX, Slot::since_1970)
    }

    /// Until then, but no longer than a look; or until the client is shut down.
    async fn sleep_until(&self, then: Instant) {
        let now = self.engine.clock.now();
        let then = then.clamp(now.after(GRAIN), now.after(LOOK));
        tokio::select! {
            biased;
            () = self.engine.closing() => {}
            () = self.engine.clock.sleep_until(then) => {}
        }
    }
}

/// Between zero and one.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}
