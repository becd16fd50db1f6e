//! Whoever may enter a lock it holds once more.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, Weak},
};

use super::{Guard, Outcome};
use crate::{
    backend::{Busy, Mode},
    engine::{
        Engine,
        acquire::{Acquired, Order, Patience, acquire},
        hold::Hold,
        leave,
    },
    error::{Error, ErrorKind, Operation, Result},
    id::ClientId,
    key::Key,
    sync::Mutex,
};

/// An owner of locks, for re-entry.
///
/// A lock belongs to an acquisition, never to a thread or a task; so asking twice for the same lock means waiting
/// for oneself. Where code that holds a lock calls code that asks for it, give both the same owner: the inner
/// guard then has the same fence, and the lock is free when the last guard is gone.
///
/// An owner that writes may read as well; when its last write guard goes and a read guard stays, the lock becomes
/// a read lock. An owner that only reads cannot write: that is refused with the kind `WouldDeadlock`.
///
/// Clones are the same owner. An owner lives in one client.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, Owner, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let me = Owner::new();
/// let outer = locks.lock("report").owner(&me).acquire().await?;
/// let inner = locks.lock("report").owner(&me).acquire().await?;
/// assert_eq!(outer.fence(), inner.fence());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Owner(Arc<Holdings>);

#[derive(Debug, Default)]
struct Holdings {
    client: OnceLock<ClientId>,
    slots: Mutex<HashMap<Key, Slot>>,
}

/// What an owner holds of one name. The lock on it puts the owner's operations on that name in order: of two
/// tasks that ask at once, one acquires and the other re-enters.
type Slot = Arc<tokio::sync::Mutex<Weak<Hold>>>;

impl Owner {
    /// A new owner, who holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) async fn acquire(&self, engine: &Arc<Engine>, order: Order) -> Result<Outcome> {
        self.belongs_to(engine, order.spec.mode)?;
        let mode = order.spec.mode;
        let slot = self.slot(&order.spec.key);
        let Some(mut current) = order.patience.bear(&engine.clock, slot.lock()).await else {
            // Another task of this owner is about to acquire it and still stands in line.
            return Ok(Outcome::Busy(Busy::default()));
        };
        if let Some(hold) = current.upgrade()
            && let Some(entered) = hold.enter(mode)
        {
            entered?;
            return reenter(&hold, mode, order.patience).await.map(Outcome::Held);
        }
        match acquire(engine, order).await.map_err(|error| error.during(Operation::Acquire))? {
            Acquired::Busy(busy) => Ok(Outcome::Busy(busy)),
            Acquired::Held(won) => {
                let guard = Guard::new(won.take(), mode);
                *current = Arc::downgrade(guard.hold());
                Ok(Outcome::Held(guard))
            }
        }
    }

    fn belongs_to(&self, engine: &Engine, mode: Mode) -> Result<()> {
        if matches!(mode, Mode::Permits { .. }) {
            return Err(Error::config(
                Operation::Acquire,
                "permits have no owner; take as many as you need at once",
            ));
        }
        let client = *self.0.client.get_or_init(|| engine.who.client);
        if client == engine.who.client {
            return Ok(());
        }
        Err(Error::config(
            Operation::Acquire,
            "this owner belongs to another client; make one for this client",
        ))
    }

    fn slot(&self, key: &Key) -> Slot {
        let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Names it holds no more are forgotten, so that an owner does not grow with every name it ever held.
        slots.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|hold| hold.strong_count() > 0)
        });
        slots.entry(key.clone()).or_default().clone()
    }
}

/// The guard exists before the store is told, so that leaving is sure whatever happens on the way.
async fn reenter(hold: &Arc<Hold>, mode: Mode, patience: Patience) -> Result<Guard> {
    let guard = Guard::new((hold.clone(), hold.fence), mode);
    let entered = async {
        hold.check(Operation::Reenter)?;
        tokio::select! {
            biased;
            told = leave::recount(hold) => told,
            // What is lost meanwhile is not entered, whatever the store may say of it later.
            _ = hold.lost() => hold.check(Operation::Reenter),
        }
    };
    // A store that does not answer must not keep us beyond our patience, nor beyond the lease.
    let entered = match patience {
        Patience::None => Some(entered.await),
        patience => patience.and_a_little().bear(&hold.engine.clock, entered).await,
    };
    match entered.unwrap_or_else(|| Err(unanswered())) {
        Ok(()) => Ok(guard),
        Err(error) => Err(error.during(Operation::Reenter).about(hold.spec.key.name())),
    }
}

fn unanswered() -> Error {
    let message = "the store did not answer in time; what was held before is held as often as before";
    Error::new(ErrorKind::Unavailable, Operation::Reenter, message)
}
