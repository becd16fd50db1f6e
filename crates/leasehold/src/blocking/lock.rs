//! The ways to hold one name, for synchronous code.

use std::time::Duration;

use super::{Guard, wait};
use crate::{CallSite, Error, Owner, Result, Span, Ticket, backend::Busy};

front! {
    /// A lock on one name, for synchronous code; see [`leasehold::Lock`](crate::Lock).
    #[derive(Clone, Debug)]
    #[must_use = "a lock does nothing until it is acquired"]
    Lock(crate::Lock) like Lock
    options {
        wait(wait: impl Into<Span>);
        ttl(ttl: impl Into<Span>);
        max_hold(max_hold: impl Into<Span>);
        no_renew();
        fair();
        cohort(members: u32);
        fenced();
        plain();
        label(label: &str);
        asked_at(location: CallSite);
        owner(owner: &Owner);
    }
    looks {
        name() -> &str;
    }
    waits {
        acquire() -> Result<Guard> [held: held.map(Guard)];
        try_acquire() -> Result<Option<Guard>> [held: Ok(held?.map(Guard))];
        attempt() -> Result<Outcome> [came: came.map(Outcome::from)];
        ticket() -> Result<Ticket>;
        leased_ticket() -> Result<(Ticket, Duration)>;
    }
}

impl Lock {
    /// Acquires the lock, does the work on this thread, releases the lock: whatever comes of the work, it is released when
    /// this returns. A panic in the work releases it in the background.
    ///
    /// ```
    /// # let locks = leasehold::blocking::connect("memory:")?;
    /// let fence = locks.lock("order:42").scope(|held| Ok::<_, leasehold::Error>(held.fence()))?;
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the work; and, turned into the work's error type, those of acquiring. If the lock was lost before the
    /// work was done, the kind is `Lost` even though the work went on to its end: ask [`Guard::check`] on the way.
    pub fn scope<T, E, F>(&self, work: F) -> Result<T, E>
    where
        E: From<Error>,
        F: FnOnce(&Guard) -> Result<T, E>,
    {
        let guard = self.acquire()?;
        let done = work(&guard).and_then(|value| guard.check().map(|()| value).map_err(E::from));
        if let Err(error) = wait(guard.0.release()) {
            tracing::warn!(%error, "release after the work was done");
        }
        done
    }
}

/// What came of trying.
#[derive(Debug)]
#[must_use = "a held lock is released when its guard is dropped"]
pub enum Outcome {
    /// It is ours.
    Held(Guard),
    /// Somebody else has it: this says who.
    Busy(Busy),
}

impl From<crate::Outcome> for Outcome {
    fn from(outcome: crate::Outcome) -> Self {
        match outcome {
            crate::Outcome::Held(guard) => Self::Held(Guard(guard)),
            crate::Outcome::Busy(busy) => Self::Busy(busy),
        }
    }
}

front! {
    /// Many readers or one writer, for synchronous code; see [`leasehold::RwLock`](crate::RwLock).
    #[derive(Clone, Debug)]
    #[must_use = "a lock does nothing until it is acquired"]
    RwLock(crate::RwLock) like RwLock
    looks {
        read() -> Lock [lock: Lock(lock)];
        write() -> Lock [lock: Lock(lock)];
    }
}

front! {
    /// So many at a time, for synchronous code; see [`leasehold::Semaphore`](crate::Semaphore).
    #[derive(Clone, Debug)]
    #[must_use = "a semaphore does nothing until it is acquired"]
    Semaphore(crate::Semaphore) like Semaphore
    options {
        counting();
    }
    looks {
        permits(take: u32) -> Lock [lock: Lock(lock)];
    }
    waits {
        acquire() -> Result<Guard> [held: held.map(Guard)];
    }
}
