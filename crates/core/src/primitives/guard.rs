//! Proof of holding a lock, and the way to give it back.

use std::{sync::Arc, time::Duration};

use super::{Proof, Watch};
use crate::{
    backend::{Guarantee, Loss, Mode},
    engine::{
        hold::{Hold, State},
        leave,
        time::Instant,
    },
    error::{Error, Operation, Result},
    id::ClaimId,
    planted::{Bug, planted},
    span::Span,
};

/// A held lock. Dropping it releases the lock in the background; [`release`](Self::release) waits for that and
/// says how it went.
///
/// A lock can be lost while it is held: the store may be out of reach for longer than the lease, the machine may
/// sleep, an operator may break it. A guard never claims more than it can know: [`check`](Self::check) compares the
/// boot clock with a deadline that counts from before the winning request was sent.
///
/// What no lock can do: stop a process that was paused *between* a check and the write it was meant to protect.
/// For that, pass [`fence`](Self::fence) along and have the resource refuse a smaller one than it has seen.
#[derive(Debug)]
#[must_use = "if unused the lock is released at once"]
pub struct Guard {
    hold: Arc<Hold>,
    mode: Mode,
    fence: u64,
    live: bool,
}

impl Guard {
    pub(crate) fn new((hold, fence): (Arc<Hold>, u64), mode: Mode) -> Self {
        Self { hold, mode, fence, live: true }
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.hold.spec.key.name()
    }

    /// Greater than the fence of every earlier holder of this name, across release, expiry, forced release and
    /// restart; how surely, [`guarantee`](Self::guarantee) says.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Identity of this acquisition: what an operator names to break it. Those of one [cohort](crate::Lock::cohort)
    /// share it.
    pub fn id(&self) -> ClaimId {
        self.hold.spec.id
    }

    /// This acquisition as its store knows it, for what only that store can do: see the store's own crate.
    ///
    /// A cohort does not hand the lock on after that: whoever has the proof is the last who holds it by this acquisition.
    pub fn proof(&self) -> Proof {
        self.hold.prove();
        let spec = &self.hold.spec;
        let store = self.hold.engine.backend.info().clone();
        Proof { store, key: spec.key.clone(), id: spec.id, mode: spec.mode, fence: self.fence }
    }

    /// How strong a lock on this store is.
    pub fn guarantee(&self) -> Guarantee {
        self.hold.engine.backend.info().guarantee
    }

    /// Whether the lock is held, at this moment, by this machine's boot clock. No I/O.
    pub fn state(&self) -> State {
        self.hold.state()
    }

    /// An error of the kind `Lost` if the lock is lost by now. No I/O.
    pub fn check(&self) -> Result<()> {
        self.hold.check(Operation::Check)
    }

    /// How long the lock is held for sure if no renewal succeeds any more; zero when it is lost. No I/O.
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// The moment at which the lock is lost if no renewal succeeds any more.
    pub fn deadline(&self) -> Instant {
        self.hold.deadline()
    }

    /// Completes when the lock is lost, and says how.
    ///
    /// Completes at the deadline at the latest; after a suspend of the machine, as soon as it is polled.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it; a lost lock stays lost.
    pub async fn lost(&self) -> Loss {
        self.hold.lost().await
    }

    /// Something that sees this lock and does not hold it: for those who work under a guard that others keep.
    pub fn watch(&self) -> Watch {
        Watch::new(self.hold.clone(), self.fence)
    }

    /// Completes when the deadline is later than `known`, or the lock is lost; says the deadline then. For those
    /// who must hand on the deadline, such as a supervisor of another process.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn renewed(&self, known: Instant) -> Instant {
        self.hold.renewed(known).await
    }

    /// Asks for the lease to run this long from now, at once; it is never shortened, and never goes beyond `max_hold`.
    ///
    /// # Errors
    /// `Lost` if the lock is lost; any other kind leaves the lease as it was.
    ///
    /// # Cancel safety
    /// A request on its way is finished in the background.
    pub async fn extend(&self, lease: impl Into<Span>) -> Result<()> {
        self.extend_for(self.duration(lease.into())?).await
    }

    /// Sees to it that the lock is held for at least this long from now, asking the store only if it is not.
    ///
    /// # Errors
    /// As for [`extend`](Self::extend); and `Config` if it cannot be held for that long.
    ///
    /// # Cancel safety
    /// As for [`extend`](Self::extend).
    pub async fn ensure(&self, remaining: impl Into<Span>) -> Result<()> {
        let wanted = self.duration(remaining.into())?;
        self.check()?;
        if self.remaining() >= wanted {
            return Ok(());
        }
        // What is believed is a little less than what is granted, so a little more is asked for.
        let asked = wanted.saturating_add(wanted / 32).saturating_add(Duration::from_millis(10));
        self.extend_for(asked).await?;
        if self.remaining() >= wanted {
            return Ok(());
        }
        let message = "the lock cannot be held for that long: its max_hold, or the store, gives less";
        Err(Error::config(Operation::Renew, message).about(self.name()))
    }

    /// Releases the lock and waits until the store has it.
    ///
    /// # Errors
    /// `Lost` if it was lost before. `Unavailable` if the store could not be told; it is tried again in the
    /// background until the lease ends.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the release goes on in the background.
    pub async fn release(mut self) -> Result<()> {
        self.live = false;
        leave::leave(&self.hold, self.mode, self.fence).await
    }

    pub(super) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    async fn extend_for(&self, lease: Duration) -> Result<()> {
        crate::engine::acquire::fits_ttl(lease, &self.hold.engine.backend.info().capabilities)
            .map_err(|error| error.during(Operation::Renew).about(self.name()))?;
        leave::extend(&self.hold, lease).await
    }

    fn duration(&self, span: Span) -> Result<Duration> {
        span.get().map_err(|message| Error::config(Operation::Renew, message).about(self.name()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.live && !planted(Bug::DropDoesNothing) {
            leave::in_background(&self.hold, self.mode, self.fence);
        }
    }
}
