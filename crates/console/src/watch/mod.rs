//! Looking at a store again and again, and telling what changed in between.
//!
//! No store tells everything that happens to its locks, so a watcher looks: a page at a time, never more often than it
//! is asked to, and at no more than [`NAMES`] names; a page that a store fills only in part counts as a full one, for it has
//! looked through more than it found. What comes and goes between two looks is not seen. A hold that is gone before its
//! lease could run out was released. One whose lease had run out was lost, if the looks are so close together that a
//! renewal would have been seen; else nobody knows. Either was broken if the audit says so.

mod diff;
mod told;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold::{
    Action, AuditEntry, ClaimId, Client, Result,
    backend::{Broken, Holder, LockPage, LockState, Waiter},
};

pub use self::told::told;
use crate::store::Store;

/// The most names that a look takes in.
pub const NAMES: usize = 20_000;

/// Names asked for at a time.
const PAGE: usize = 500;

/// So many of the newest audit entries can explain what has just ended.
const EXPLAINED: usize = 50;

/// One who looks at the names that begin with a prefix.
#[derive(Debug)]
pub struct Watcher {
    store: Store,
    prefix: String,
    seen: Option<Arc<Seen>>,
}

/// What was seen in one look.
#[derive(Debug, Default)]
pub struct Seen {
    /// The names in use.
    pub locks: BTreeMap<String, Arc<LockState>>,
    /// Whether that is all of them.
    pub complete: bool,
    /// How long the look took.
    pub took: Duration,
    /// How long the store took to answer for the first page.
    pub latency: Duration,
    at: Option<Instant>,
    /// The longest that was seen of the lease of each hold.
    leases: HashMap<ClaimId, Duration>,
}

impl Seen {
    /// How long ago that was; `None` before any look.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.at.map(|at| at.elapsed())
    }

    /// Notes the leases, and what the look before knew of them.
    fn take_leases(&mut self, before: Option<&Self>) {
        let holders = self.locks.values().flat_map(|lock| &lock.holders);
        let longest = |id| before.and_then(|before| before.leases.get(id).copied()).unwrap_or_default();
        self.leases = holders.map(|holder| (holder.id, holder.remaining.max(longest(&holder.id)))).collect();
    }

    /// Everything that stands, as if it had just happened: where a listing of changes begins.
    pub fn standing(&self) -> Vec<Change> {
        diff::changes(&Self { complete: true, ..Self::default() }, self)
    }
}

/// Something that changed between two looks.
#[derive(Clone, Debug)]
pub struct Change {
    /// The name.
    pub name: String,
    /// What happened to it.
    pub what: What,
    /// The name after it; `None` if nothing is left of it.
    pub lock: Option<Arc<LockState>>,
}

/// What happened to a name.
#[derive(Clone, Debug)]
pub enum What {
    /// Somebody holds it.
    Acquired(Holder),
    /// Somebody who held it, as last seen, does so no more.
    Ended(Holder, End),
    /// Somebody waits for it.
    Waiting(Waiter),
    /// Somebody who waited, as last seen, does so no more.
    Left(Waiter),
    /// It is something else now: another kind, count or number of permits.
    Changed,
}

/// How a hold ended, as far as can be seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Before its lease ran out.
    Released,
    /// With its lease.
    Expired,
    /// After the last look it could have been seen in: released or lost.
    Unknown,
    /// By an operator.
    Broken(Broken),
}

impl Watcher {
    /// A watcher of the names that begin with `prefix`.
    pub fn new(client: Client, prefix: &str) -> Self {
        Self::of(Store::new(client), prefix)
    }

    /// One that asks a store which others ask, too.
    pub(crate) fn of(store: Store, prefix: &str) -> Self {
        Self { store, prefix: prefix.to_owned(), seen: None }
    }

    /// What was seen last; `None` before the first look.
    pub fn seen(&self) -> Option<&Arc<Seen>> {
        self.seen.as_ref()
    }

    /// Looks, and says what changed since the last look; the first finds no changes.
    ///
    /// # Errors
    /// Those of the store. The next look compares with the last one that went well.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn look(&mut self) -> Result<Vec<Change>> {
        let mut now = self.sweep().await?;
        now.take_leases(self.seen.as_deref());
        let mut changes = match &self.seen {
            Some(before) => diff::changes(before, &now),
            None => Vec::new(),
        };
        self.seen = Some(Arc::new(now));
        self.explain(&mut changes).await;
        Ok(changes)
    }

    async fn sweep(&self) -> Result<Seen> {
        let (begun, mut seen, mut cursor) = (Instant::now(), Seen::default(), None::<String>);
        let mut looked_at = 0;
        loop {
            let LockPage { locks, next } = self.store.list(&self.prefix, cursor.as_deref(), PAGE).await?;
            if cursor.is_none() {
                seen.latency = begun.elapsed();
            }
            looked_at += locks.len().max(PAGE);
            seen.locks.extend(locks.into_iter().map(|lock| (lock.name.clone(), Arc::new(lock))));
            seen.complete = next.is_none();
            match next {
                Some(next) if looked_at < NAMES => cursor = Some(next),
                _ => break,
            }
        }
        (seen.took, seen.at) = (begun.elapsed(), Some(Instant::now()));
        Ok(seen)
    }

    /// Which of the holds that ended were broken. Asked only if there are any; what cannot be told is left as it is.
    async fn explain(&self, changes: &mut [Change]) {
        if !changes.iter().any(|change| matches!(change.what, What::Ended(..))) {
            return;
        }
        let Ok(page) = self.store.audit(None, EXPLAINED).await else { return };
        let broken = page.entries.into_iter().filter(|entry| entry.action == Action::Break);
        let broken: BTreeMap<ClaimId, Broken> =
            broken.filter_map(|AuditEntry { id, by, why, .. }| Some((id?, Broken { by, why }))).collect();
        for change in changes {
            if let What::Ended(holder, end) = &mut change.what
                && let Some(broken) = broken.get(&holder.id)
            {
                *end = End::Broken(broken.clone());
            }
        }
    }
}
