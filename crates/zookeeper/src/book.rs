//! Our own nodes: where they are, and until when their leases run.
//!
//! A node in ZooKeeper ends with its session, not with a lease. So that a lease nobody renews ends all the same, while
//! the process and its session live on, one task removes what has run out. It holds on to nothing: when the store is
//! dropped, it ends.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use leasehold_core::{
    ClaimId,
    backend::record::WAIT_LEASE,
    time::{Clock, Instant, TICK},
};
use tokio::sync::Notify;

/// A node of ours.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// The container it is in.
    pub(crate) parent: String,
    /// Its name in there.
    pub(crate) node: String,
    /// The session it belongs to.
    pub(crate) session: i64,
    pub(crate) fence: u64,
    /// Until when it may be held; `None` while it waits.
    pub(crate) until: Option<Instant>,
    /// Its lease has run out and it is being removed: nothing renews it any more.
    ending: bool,
    /// Gone when nobody stands behind a waiting node any more.
    claim: Weak<()>,
    /// Since when nobody does.
    orphaned: Option<Instant>,
}

impl Own {
    pub(crate) fn new(parent: &str, node: String, session: i64, fence: u64, claim: &Arc<()>) -> Self {
        let claim = Arc::downgrade(claim);
        let parent = parent.to_owned();
        Self { parent, node, session, fence, until: None, ending: false, claim, orphaned: None }
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.parent, self.node)
    }

    /// Whether its lease has run out, or, while it waits, its place in line.
    fn is_over(&mut self, now: Instant) -> bool {
        if let Some(until) = self.until {
            return until <= now;
        }
        if self.claim.strong_count() > 0 {
            self.orphaned = None;
            return false;
        }
        now >= self.orphaned.get_or_insert(now).after(WAIT_LEASE)
    }
}

/// All nodes of ours.
#[derive(Debug, Default)]
pub(crate) struct Book {
    owns: Mutex<HashMap<ClaimId, Own>>,
    /// Tries that failed, with the container they were made in: what they left must not stand in anybody's way while
    /// their claim waits elsewhere. Locked while they are removed, so that nothing made later is removed with them.
    sweeps: tokio::sync::Mutex<HashMap<ClaimId, String>>,
    written: Notify,
}

impl Book {
    pub(crate) fn insert(&self, id: ClaimId, own: Own) {
        self.owns().insert(id, own);
        self.written.notify_one();
    }

    /// The node of this acquisition, unless it belongs to another session or is being removed.
    pub(crate) fn get(&self, id: ClaimId, session: i64) -> Option<Own> {
        self.owns().get(&id).filter(|own| own.session == session && !own.ending).cloned()
    }

    /// As [`get`](Self::get), for a claim that stands behind the node from now on.
    pub(crate) fn adopt(&self, id: ClaimId, session: i64, claim: &Arc<()>) -> Option<Own> {
        let mut owns = self.owns();
        let own = owns.get_mut(&id).filter(|own| own.session == session && !own.ending)?;
        if own.claim.strong_count() == 0 {
            own.claim = Arc::downgrade(claim);
        }
        Some(own.clone())
    }

    /// Holds until then, or longer if it did before. Says `false` if it is no more.
    pub(crate) fn hold(&self, id: ClaimId, until: Instant) -> bool {
        let mut owns = self.owns();
        let Some(own) = owns.get_mut(&id).filter(|own| !own.ending) else { return false };
        own.until = Some(own.until.map_or(until, |known| known.max(until)));
        self.written.notify_one();
        true
    }

    /// How long a lease of ours still runs; `None` if it is not ours.
    pub(crate) fn remaining(&self, id: ClaimId) -> Option<Duration> {
        let until = self.owns().get(&id)?.until?;
        Some(Clock::boot().now().until(until))
    }

    /// The node of this acquisition that is being removed because its lease has run out: it must be gone before there
    /// can be another.
    pub(crate) fn ending(&self, id: ClaimId) -> Option<Own> {
        self.owns().get(&id).filter(|own| own.ending).cloned()
    }

    pub(crate) fn remove(&self, id: ClaimId) {
        self.owns().remove(&id);
    }

    /// Has what a failed try may have left removed, unless it is held.
    pub(crate) async fn sweep(&self, id: ClaimId, parent: &str) {
        if self.remaining(id).is_none() {
            self.remove(id);
            self.sweeps.lock().await.insert(id, parent.to_owned());
            self.written.notify_one();
        }
    }

    /// Has it removed no more: its claim sees to it itself.
    pub(crate) async fn spare(&self, id: ClaimId) {
        self.sweeps.lock().await.remove(&id);
    }

    /// What failed tries may have left.
    pub(crate) async fn sweeps(&self) -> tokio::sync::MutexGuard<'_, HashMap<ClaimId, String>> {
        self.sweeps.lock().await
    }

    /// Forgets this very node, and not one that came after it.
    pub(crate) fn forget(&self, id: ClaimId, node: &str) {
        let mut owns = self.owns();
        if owns.get(&id).is_some_and(|own| own.node == node) {
            owns.remove(&id);
        }
    }

    /// What has run out. It can be renewed no more.
    pub(crate) fn take_over(&self, now: Instant) -> Vec<(ClaimId, Own)> {
        let mut over = Vec::new();
        for (id, own) in self.owns().iter_mut() {
            if own.ending || own.is_over(now) {
                own.ending = true;
                over.push((*id, own.clone()));
            }
        }
        over
    }

    /// Waits until something may have run out.
    pub(crate) async fn pause(&self) {
        let now = Clock::boot().now();
        let next = {
            let owns = self.owns();
            let held = owns.values().filter_map(|own| own.until).min();
            let is_idle = owns.is_empty() && self.sweeps.try_lock().is_ok_and(|sweeps| sweeps.is_empty());
            held.map(|until| now.until(until).min(TICK)).or((!is_idle).then_some(TICK))
        };
        match next {
            // A little later, so that what runs out together is removed together.
            Some(next) => tokio::time::sleep(next + Duration::from_millis(5)).await,
            None => self.written.notified().await,
        }
    }

    /// Ends a pause.
    pub(crate) fn wake(&self) {
        self.written.notify_one();
    }

    fn owns(&self) -> MutexGuard<'_, HashMap<ClaimId, Own>> {
        self.owns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
