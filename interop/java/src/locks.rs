//! Redisson's locks, all kinds with one set of verbs, named as in Redisson.

use std::time::Duration;

use crate::{call::Call, thread::Thread};

/// A lock, as one thread sees it. Redisson keeps some settings in the lock object; here every call has a fresh one.
#[derive(Clone, Debug)]
pub struct Lock<'a> {
    thread: Thread<'a>,
    kind: &'static str,
    name: String,
}

impl<'a> Lock<'a> {
    pub(crate) fn new(thread: Thread<'a>, kind: &'static str, name: &str) -> Self {
        Self { thread, kind, name: name.to_owned() }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for it; then holds it until it unlocks, renewed by the watchdog.
    pub fn lock(&self) -> Call<()> {
        self.thread.tell(self.kind, &self.name, "lock", &[])
    }

    /// Waits for it; then holds it for so long, without renewal.
    pub fn lock_for(&self, lease: Duration) -> Call<()> {
        self.thread.tell(self.kind, &self.name, "lock", &[&lease.as_millis()])
    }

    /// As [`lock`](Self::lock), but an interrupt ends the wait.
    pub fn lock_interruptibly(&self) -> Call<()> {
        self.thread.tell(self.kind, &self.name, "lockInterruptibly", &[])
    }

    /// Takes it if it is free.
    pub fn try_lock(&self) -> Call<bool> {
        self.thread.tell(self.kind, &self.name, "tryLock", &[])
    }

    /// Waits for it, but no longer than this; then holds it, renewed.
    pub fn try_lock_within(&self, wait: Duration) -> Call<bool> {
        self.thread.tell(self.kind, &self.name, "tryLock", &[&wait.as_millis()])
    }

    /// Waits for it, but no longer than this; then holds it for so long.
    pub fn try_lock_for(&self, wait: Duration, lease: Duration) -> Call<bool> {
        self.thread.tell(self.kind, &self.name, "tryLock", &[&wait.as_millis(), &lease.as_millis()])
    }

    /// Releases one hold.
    pub fn unlock(&self) -> Call<()> {
        self.thread.tell(self.kind, &self.name, "unlock", &[])
    }

    /// Releases it, whoever holds it; says whether anybody did.
    pub fn force_unlock(&self) -> Call<bool> {
        self.thread.tell(self.kind, &self.name, "forceUnlock", &[])
    }

    /// Whether anybody holds it.
    pub fn is_locked(&self) -> Call<bool> {
        self.thread.tell(self.kind, &self.name, "isLocked", &[])
    }

    /// Whether this thread holds it.
    pub fn is_held(&self) -> Call<bool> {
        self.thread.tell(self.kind, &self.name, "isHeld", &[])
    }

    /// How often this thread holds it.
    pub fn hold_count(&self) -> Call<u64> {
        self.thread.tell(self.kind, &self.name, "holdCount", &[])
    }

    /// How many milliseconds it has to live: -2 if it is free, -1 if it does not expire.
    pub fn ttl(&self) -> Call<i64> {
        self.thread.tell(self.kind, &self.name, "ttl", &[])
    }

    /// As [`lock`](Self::lock), with the token. Fenced locks only.
    pub fn lock_and_get_token(&self) -> Call<u64> {
        self.thread.tell(self.kind, &self.name, "lockToken", &[])
    }

    /// As [`try_lock_for`](Self::try_lock_for), with the token. Fenced locks only.
    pub fn try_lock_and_get_token(&self, wait: Duration, lease: Duration) -> Call<Option<u64>> {
        self.thread.tell(self.kind, &self.name, "tryLockToken", &[&wait.as_millis(), &lease.as_millis()])
    }

    /// The newest token, 0 if there was none. Fenced locks only.
    pub fn token(&self) -> Call<u64> {
        self.thread.tell(self.kind, &self.name, "token", &[])
    }
}
