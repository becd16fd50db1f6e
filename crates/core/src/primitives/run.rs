//! One run of a job: what the work is given, and what came of it.

use std::{any::Any, fmt, panic::resume_unwind, pin::Pin, time::Duration};

use leasehold_schedule::Slot;

use super::Guard;
use crate::{
    backend::{Busy, Loss},
    engine::{
        book::words,
        past::{Ended, Paused},
        tally::Ticket,
    },
    error::{Error, Operation, Result},
};

/// A run under way: what the work is given.
#[derive(Debug)]
pub struct Run {
    pub(super) slot: Slot,
    pub(super) guard: Guard,
    /// Since before it was begun in the book.
    pub(super) _ticket: Ticket,
}

impl Run {
    /// The slot it is for: the same for nobody else. Of a job without a schedule, when it began.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Greater than that of every earlier run: pass it along with what the work writes.
    pub fn fence(&self) -> u64 {
        self.guard.fence()
    }

    /// An error of the kind `Lost` if somebody else may run the job by now. No I/O.
    pub fn check(&self) -> Result<()> {
        self.guard.check()
    }

    /// Completes when the lock is lost or the time is over, and says which.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// The guard of the lock that it runs under.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// What came of being ready to run a job now.
#[derive(Debug)]
#[non_exhaustive]
pub enum Turn<T> {
    /// It was run: this is what the work gave.
    Ran(T),
    /// Somebody else runs it.
    Busy(Busy),
    /// No slot is due before this one.
    NotDue(Option<Slot>),
    /// The last run counts until then, as the time since 1970.
    Resting(Duration),
    /// An operator paused it.
    Paused(Paused),
}

/// What came of a run.
pub(super) enum Performed<T, E> {
    Finished(Result<T, E>),
    Lost(Loss),
    /// The work panicked, with this.
    Panicked(Box<dyn Any + Send>),
}

impl<T, E: From<Error>> Performed<T, E> {
    /// What the caller is told. A panic goes on from here.
    pub(super) fn into_result(self, name: &str) -> Result<T, E> {
        match self {
            Self::Finished(done) => done,
            Self::Panicked(panic) => resume_unwind(panic),
            Self::Lost(loss) => Err(Error::from(loss).during(Operation::Job).about(name).into()),
        }
    }
}

/// One run of [`BoxedWork`].
pub type BoxedRun<'r> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'r>>;

/// Work that is not known by its type: see [`Job::run_boxed`](super::Job::run_boxed).
pub type BoxedWork = dyn for<'r> Fn(&'r Run) -> BoxedRun<'r> + Send + Sync;

/// How it is written down.
pub(super) fn ended<T, E: fmt::Display>(run: &Run, performed: &Performed<T, E>) -> Ended {
    match performed {
        Performed::Finished(Ok(_)) => Ended::Done,
        Performed::Finished(Err(error)) if run.check().is_err() => Ended::Lost(words(&error.to_string())),
        Performed::Finished(Err(error)) => Ended::Failed(words(&error.to_string())),
        Performed::Lost(loss) => Ended::Lost(words(&loss.to_string())),
        Performed::Panicked(panic) => Ended::Failed(words(&format!("panicked: {}", said(&**panic)))),
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}
