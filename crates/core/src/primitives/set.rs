//! Several locks, all or nothing.

use std::time::Duration;

use futures_util::future::{join_all, select_all};

use super::{Guard, Lock, Outcome, asked::Asked};
use crate::{
    backend::{Busy, Loss, Mode},
    client::Client,
    engine::{acquire::Patience, time::Instant},
    error::{Error, Operation, Result},
    span::Span,
};

/// Several locks taken together: of any kind, on any store, all or none.
///
/// They are always taken in one order, the same in every process, so two sets can never wait for each other.
/// Asking for one lock twice counts once; read and write of one name is write. One limit on waiting covers all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let transfer = locks.set().write("account:2").write("account:1").read("rates").wait("3s").acquire().await?;
/// assert!(transfer.fence("account:1").is_some());
/// transfer.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a set does nothing until it is acquired"]
pub struct LockSet {
    client: Client,
    members: Vec<Lock>,
    wait: Option<Span>,
    ttl: Option<Span>,
}

/// All the locks of a set, held. Dropping it releases them all.
#[derive(Debug)]
#[must_use = "if unused the locks are released at once"]
pub struct SetGuard {
    guards: Vec<Guard>,
}

impl LockSet {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), members: Vec::new(), wait: None, ttl: None }
    }

    /// Adds a lock, held exclusively.
    pub fn lock(self, name: &str) -> Self {
        let lock = self.client.lock(name);
        self.with(lock)
    }

    /// Adds a lock as a writer holds it: the same as [`lock`](Self::lock).
    pub fn write(self, name: &str) -> Self {
        self.lock(name)
    }

    /// Adds a lock as a reader holds it.
    pub fn read(self, name: &str) -> Self {
        let lock = self.client.rwlock(name).read();
        self.with(lock)
    }

    /// Adds permits of a semaphore.
    pub fn permits(self, name: &str, take: u32, of: u32) -> Self {
        let lock = self.client.semaphore(name, of).permits(take);
        self.with(lock)
    }

    /// Adds any lock, of this client or another, with options of its own. Its `wait` is replaced by the set's.
    pub fn with(mut self, lock: Lock) -> Self {
        self.members.push(lock);
        self
    }

    /// How long to wait for all of them together; as for [`Lock::wait`].
    pub fn wait(mut self, wait: impl Into<Span>) -> Self {
        self.wait = Some(wait.into());
        self
    }

    /// The lease of every lock in the set, whenever it was added.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.ttl = Some(ttl.into());
        self
    }

    /// Acquires them all, waiting for ever, or as long as [`wait`](Self::wait) says.
    ///
    /// # Errors
    /// As for [`Lock::acquire`]; on any error none is held.
    ///
    /// # Cancel safety
    /// Dropping the future gives back in the background what was taken.
    pub async fn acquire(&self) -> Result<SetGuard> {
        match self.take_all(None).await? {
            Ok(guard) => Ok(guard),
            Err((name, busy)) => Err(Error::from_busy(Operation::Acquire, busy).about(&name)),
        }
    }

    /// Tries to acquire them all: `None` if one of them cannot be had, at once or after [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<SetGuard>> {
        Ok(self.take_all(Some(Duration::ZERO)).await?.ok())
    }

    /// Takes one after the other, in the one order. What was taken is given back as `guards` is dropped.
    async fn take_all(&self, otherwise: Option<Duration>) -> Result<Result<SetGuard, (String, Busy)>> {
        let wait = self.wait.clone().map(Span::get).transpose();
        let wait = wait.map_err(|message| Error::config(Operation::Acquire, message))?.or(otherwise);
        let clock = &self.client.engine().clock;
        let end = wait.map(|wait| clock.now().after(wait));
        let mut guards = Vec::new();
        for lock in self.in_order()? {
            let left = end.map(|end: Instant| clock.now().until(end));
            let lock = lock.wait_at_most(left);
            // What is held already may be lost while we wait for the rest.
            let asked = tokio::select! {
                biased;
                asked = lock.ask(Patience::Forever) => asked?,
                lost = first_lost(&guards) => return Err(lost),
            };
            match asked {
                Outcome::Held(guard) => guards.push(guard),
                Outcome::Busy(busy) => {
                    // What became of the others does not matter to a caller who has none of them.
                    drop(SetGuard { guards }.release().await);
                    return Ok(Err((lock.name().to_owned(), busy)));
                }
            }
        }
        let set = SetGuard { guards };
        set.check()?;
        Ok(Ok(set))
    }

    /// The members by store and name, each once.
    fn in_order(&self) -> Result<Vec<Lock>> {
        if self.members.is_empty() {
            return Err(Error::config(Operation::Acquire, "the set is empty; add locks to it"));
        }
        let mut members: Vec<Lock> = self.members.clone();
        if let Some(ttl) = &self.ttl {
            members = members.into_iter().map(|lock| lock.ttl(ttl.clone())).collect();
        }
        members.sort_by_cached_key(|lock| (place(lock), !is_exclusive(lock)));
        members.dedup_by(|next, kept| place(next) == place(kept) && !is_permits(next) && !is_permits(kept));
        if members.windows(2).any(|pair| place(&pair[0]) == place(&pair[1])) {
            let message =
                "one name is in the set as a semaphore and once more; add it once, with all its permits";
            return Err(Error::config(Operation::Acquire, message));
        }
        Ok(members)
    }
}

impl SetGuard {
    /// The fence of the lock of this name; `None` if it is not in the set.
    pub fn fence(&self, name: &str) -> Option<u64> {
        self.guard(name).map(Guard::fence)
    }

    /// The guard of the lock of this name; `None` if it is not in the set.
    pub fn guard(&self, name: &str) -> Option<&Guard> {
        self.guards.iter().find(|guard| guard.name() == name)
    }

    /// All guards, in the order in which they were taken.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// An error of the kind `Lost` if any of them is lost by now. No I/O.
    pub fn check(&self) -> Result<()> {
        self.guards.iter().try_for_each(Guard::check)
    }

    /// Completes when any of them is lost, and says how.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn lost(&self) -> Loss {
        select_all(self.guards.iter().map(|guard| Box::pin(guard.lost()))).await.0
    }

    /// How long all of them are held for sure.
    pub fn remaining(&self) -> Duration {
        self.guards.iter().map(Guard::remaining).min().unwrap_or_default()
    }

    /// Releases them all, and waits until the stores have it.
    ///
    /// # Errors
    /// The first of theirs; all are released all the same.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the releases go on in the background.
    pub async fn release(self) -> Result<()> {
        join_all(self.guards.into_iter().map(Guard::release)).await.into_iter().collect()
    }
}

/// Completes when one of these is lost.
async fn first_lost(guards: &[Guard]) -> Error {
    if guards.is_empty() {
        return std::future::pending().await;
    }
    let each = guards.iter().map(|guard| Box::pin(async { (guard.lost().await, guard.name()) }));
    let ((loss, name), ..) = select_all(each).await;
    Error::from(loss).during(Operation::Acquire).about(name)
}

/// Where a lock stands in the one order: its store, then its name.
fn place(lock: &Lock) -> (String, String) {
    let address = lock.client().info().address.clone();
    (address, [lock.client().prefix(), lock.name()].concat())
}

fn is_exclusive(lock: &Lock) -> bool {
    matches!(lock.asked(), Asked::Mode(Mode::Exclusive))
}

fn is_permits(lock: &Lock) -> bool {
    matches!(lock.asked(), Asked::Permits { .. })
}
