//! What the functions of a task hold, from the innermost out.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::wanted::Kind;
use crate::{ClientId, Error, ErrorKind, Operation, Owner, Result, SetGuard};

tokio::task_local! {
    static HOLDING: Arc<Holding>;
}

/// What one function holds. It does not keep the locks: the function does.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) client: ClientId,
    pub(super) kind: Kind,
    pub(super) owner: Option<Owner>,
    pub(super) guards: Weak<SetGuard>,
    pub(super) outer: Option<Arc<Self>>,
}

impl Holding {
    /// Of the innermost function that runs in this task, or on this thread.
    pub(super) fn current() -> Option<Arc<Self>> {
        HOLDING.try_with(Arc::clone).ok()
    }

    fn and_outer(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |holding| holding.outer.as_deref())
    }

    /// Whether this task would wait for itself if it asked for the name so. Permits are counted. Whatever else it holds of
    /// the name must be entered; a reader too, since a writer may stand in line between its two reads.
    pub(super) fn bars(&self, client: ClientId, name: &str, kind: Kind, reentrant: bool) -> bool {
        let mut taken = 0_u32;
        for one in self.and_outer().filter(|one| one.client == client && one.holds(name)) {
            match (one.kind, kind) {
                (Kind::Permits { take, .. }, Kind::Permits { .. }) => taken = taken.saturating_add(take),
                _ if reentrant && one.owner.is_some() => {}
                _ => return true,
            }
        }
        matches!(kind, Kind::Permits { take, of } if taken > 0 && taken.saturating_add(take) > of)
    }

    fn holds(&self, name: &str) -> bool {
        self.guards.upgrade().is_some_and(|guards| guards.guard(name).is_some())
    }

    /// Who re-enters for this task.
    pub(super) fn owner_in(&self, client: ClientId) -> Option<Owner> {
        self.and_outer().find(|one| one.client == client && one.owner.is_some())?.owner.clone()
    }
}

/// Proof that what was wanted is held.
#[derive(Debug)]
#[must_use = "if unused the locks are released at once"]
pub struct Acquired {
    guards: Arc<SetGuard>,
    holding: Arc<Holding>,
}

impl Acquired {
    pub(super) fn new(guards: Arc<SetGuard>, holding: Holding) -> Self {
        Self { guards, holding: Arc::new(holding) }
    }

    /// Completes when one of the locks is lost, and says which.
    pub(super) async fn lost(&self) -> Error {
        let loss = self.guards.lost().await;
        self.guards.check().err().unwrap_or_else(|| loss.into())
    }

    pub(super) fn check(&self) -> Result<()> {
        self.guards.check()
    }

    /// Work that knows what is held.
    pub(super) fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        HOLDING.scope(self.holding.clone(), work)
    }

    /// The same on this thread.
    pub(super) fn around_here<R>(&self, work: impl FnOnce() -> R) -> R {
        HOLDING.sync_scope(self.holding.clone(), work)
    }

    /// Releases; what goes wrong is no error of work that is done, since leases end by themselves.
    pub(super) async fn release(self) {
        // Somebody who is just asking keeps it for a moment; then it is released as they are done.
        if let Some(guards) = Arc::into_inner(self.guards)
            && let Err(error) = guards.release().await
        {
            tracing::warn!(%error, "release after the work was done");
        }
    }
}

/// What the innermost `#[locked]` function around this code holds; `None` outside of one.
///
/// It is known within the task, or the thread, that runs the function; not in tasks and threads it starts.
///
/// ```
/// # use leasehold::{Client, Error, locked};
/// #[locked(client = locks, key = "order:{id}")]
/// async fn ship(locks: &Client, id: u64) -> Result<u64, Error> {
///     let held = leasehold::held().expect("this function is locked");
///     held.check()?;              // no I/O: compares the boot clock
///     Ok(held.fence())            // to be passed along with each write
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// # let locks = leasehold::connect("memory:").await?;
/// # assert_eq!(ship(&locks, 7).await?, 1); Ok(()) }
/// ```
pub fn held() -> Option<Held> {
    Holding::current().map(Held)
}

/// What a `#[locked]` function holds; see [`held`].
#[derive(Clone, Debug)]
pub struct Held(Arc<Holding>);

impl Held {
    /// Greater than the fence of every earlier holder: pass it along with each write. With several keys, that of the
    /// first name in order; zero, which no resource accepts, once the function has ended.
    pub fn fence(&self) -> u64 {
        let guards = self.0.guards.upgrade();
        guards.and_then(|guards| Some(guards.guards().first()?.fence())).unwrap_or(0)
    }

    /// The fence of the lock of this name; `None` if it is not held here.
    pub fn fence_of(&self, name: &str) -> Option<u64> {
        self.0.guards.upgrade()?.fence(name)
    }

    /// An error of the kind `Lost` if any of the locks is lost by now, or the function has ended. No I/O.
    pub fn check(&self) -> Result<()> {
        let ended =
            || Error::new(ErrorKind::Lost, Operation::Check, "the function that held the lock has ended");
        self.0.guards.upgrade().ok_or_else(ended)?.check()
    }

    /// How long all of the locks are held for sure; zero once the function has ended.
    pub fn remaining(&self) -> Duration {
        self.0.guards.upgrade().map_or(Duration::ZERO, |guards| guards.remaining())
    }
}
