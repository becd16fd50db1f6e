//! Several locks, all or nothing, for synchronous code.

use std::time::Duration;

use super::{GuardRef, Lock};
use crate::{Result, Span, backend::Loss};

front! {
    /// Several locks taken together, for synchronous code; see [`leasehold::LockSet`](crate::LockSet).
    #[derive(Clone, Debug)]
    #[must_use = "a set does nothing until it is acquired"]
    LockSet(crate::LockSet) like LockSet
    options {
        lock(name: &str);
        write(name: &str);
        read(name: &str);
        permits(name: &str, take: u32, of: u32);
        wait(wait: impl Into<Span>);
        ttl(ttl: impl Into<Span>);
    }
    waits {
        acquire() -> Result<SetGuard> [held: held.map(SetGuard)];
        try_acquire() -> Result<Option<SetGuard>> [held: Ok(held?.map(SetGuard))];
    }
}

impl LockSet {
    /// As [`with`](crate::LockSet::with).
    pub fn with(self, lock: Lock) -> Self {
        Self(self.0.with(lock.0))
    }
}

front! {
    /// All the locks of a set, held. Dropping it, on any thread, releases them in the background.
    #[derive(Debug)]
    #[must_use = "if unused the locks are released at once"]
    SetGuard(crate::SetGuard) like SetGuard
    looks {
        fence(name: &str) -> Option<u64>;
        guard(name: &str) -> Option<GuardRef<'_>> [guard: guard.map(GuardRef)];
        check() -> Result<()>;
        remaining() -> Duration;
    }
    waits {
        lost() -> Loss;
    }
    ends {
        release() -> Result<()>;
    }
}

impl SetGuard {
    /// All guards, in the order in which they were taken.
    pub fn guards(&self) -> impl Iterator<Item = GuardRef<'_>> {
        self.0.guards().iter().map(GuardRef)
    }
}
