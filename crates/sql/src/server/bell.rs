//! Bells of those who wait in this process. Other machines are told through the database, where it can tell.
//!
//! A wake-up goes to the waiters that the record names, in order, and stops at the first one in this process that
//! could have the lock alone: it surely lives. Of those elsewhere nobody knows whether they do, so two are told: should
//! the first be dead, the second goes on at once. So a release costs the same with one waiter and with a thousand.
//!
//! All of it is a hint. Waiters look again at the store's polling pause.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::{
    ClaimId,
    backend::{Bell, record::Wake},
};
use tokio::sync::Notify;

/// How many waiters one release tries to reach. The others look for themselves.
const REACH: usize = 16;

/// How many of those elsewhere are told who would each have the lock alone.
const ELSEWHERE: usize = 2;

/// The bells of one open store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells(Arc<Mutex<HashMap<ClaimId, Arc<Notify>>>>);

impl Bells {
    /// Arms a bell for an acquisition.
    pub(super) fn arm(&self, id: ClaimId) -> ServerBell {
        let rope = Arc::new(Notify::new());
        self.lock().insert(id, rope.clone());
        ServerBell { id, rope, bells: self.clone() }
    }

    /// Parts those to wake into those here and those elsewhere.
    pub(super) fn sort(&self, wakes: &[Wake]) -> (Vec<ClaimId>, Vec<ClaimId>) {
        let (mut here, mut elsewhere, mut alone) = (Vec::new(), Vec::new(), 0);
        let armed = self.lock();
        for wake in wakes.iter().take(REACH) {
            if armed.contains_key(&wake.id) {
                here.push(wake.id);
                if wake.alone {
                    break;
                }
            } else {
                elsewhere.push(wake.id);
                alone += usize::from(wake.alone);
                if alone == ELSEWHERE {
                    break;
                }
            }
        }
        (here, elsewhere)
    }

    /// Whether anybody waits.
    #[cfg(feature = "postgres")]
    pub(crate) fn are_armed(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Rings one bell, if it is here.
    pub(crate) fn ring(&self, id: ClaimId) {
        let rope = self.lock().get(&id).cloned();
        if let Some(rope) = rope {
            rope.notify_one();
        }
    }

    /// Rings all: rings may have been missed.
    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&self) {
        let ropes: Vec<_> = self.lock().values().cloned().collect();
        for rope in ropes {
            rope.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClaimId, Arc<Notify>>> {
        // Nothing that could panic happens while the map is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes one claim.
#[derive(Debug)]
pub struct ServerBell {
    id: ClaimId,
    /// Keeps one ring for whoever looks later.
    rope: Arc<Notify>,
    bells: Bells,
}

impl Bell for ServerBell {
    async fn rung(&mut self) {
        self.rope.notified().await;
    }
}

impl Drop for ServerBell {
    fn drop(&mut self) {
        self.bells.lock().remove(&self.id);
    }
}
