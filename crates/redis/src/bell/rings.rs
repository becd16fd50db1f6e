//! One listener's share of the line: rung by the listening task, waited on by whoever joined.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::{Notify, oneshot};

use super::Ear;
use crate::error::Fault;

/// What is heard in place of what nobody heard: no message says this.
pub(crate) const MISSED: &str = "";

/// More than this is not kept for one who does not listen; it has missed something then.
const MEMORY: usize = 1024;

/// One share, from joining to drop.
#[derive(Debug)]
pub(crate) struct Bell {
    ear: Ear,
    token: u64,
    rings: Arc<Rings>,
    /// Until it is known that the channels are subscribed.
    arming: Option<oneshot::Receiver<Result<(), Fault>>>,
}

/// What a bell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ring {
    /// Look for yourself.
    Look,
    /// The same, and this is not where to listen any more.
    Astray,
}

#[derive(Debug, Default)]
pub(super) struct Rings {
    bell: Notify,
    is_astray: AtomicBool,
    /// What was said, for one who wants to know.
    words: Option<Mutex<Vec<String>>>,
}

impl Bell {
    pub(super) fn new(
        ear: Ear,
        token: u64,
        rings: Arc<Rings>,
        arming: oneshot::Receiver<Result<(), Fault>>,
    ) -> Self {
        Self { ear, token, rings, arming: Some(arming) }
    }

    /// Completes when the channels are subscribed, the first time, and then whenever it was rung since.
    /// Dropping it loses nothing.
    pub(crate) async fn rung(&mut self) -> Result<Ring, Fault> {
        if let Some(arming) = &mut self.arming {
            let armed = arming.await.unwrap_or(Err(Fault::Closed));
            self.arming = None;
            armed?;
        } else {
            self.rings.bell.notified().await;
        }
        Ok(if self.rings.is_astray.load(Ordering::Acquire) { Ring::Astray } else { Ring::Look })
    }

    /// What was said since the last time, [`MISSED`] among it if that is not all.
    pub(crate) fn words(&self) -> Vec<String> {
        self.rings.words().map(|mut words| std::mem::take(&mut *words)).unwrap_or_default()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ear.leave(self.token);
    }
}

impl Rings {
    /// Of one who wants to know what is said.
    pub(super) fn hearing() -> Self {
        Self { words: Some(Mutex::default()), ..Self::default() }
    }

    pub(super) fn ring(&self, word: &str) {
        if let Some(mut words) = self.words() {
            if words.len() < MEMORY {
                words.push(word.to_owned());
            } else {
                *words = vec![MISSED.to_owned()];
            }
        }
        self.bell.notify_one();
    }

    pub(super) fn stray(&self) {
        self.is_astray.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    pub(super) fn can_do_without(&self) -> bool {
        self.words.is_some()
    }

    fn words(&self) -> Option<MutexGuard<'_, Vec<String>>> {
        Some(self.words.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
