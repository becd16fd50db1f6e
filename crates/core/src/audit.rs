//! The audit: who broke which lock, when, why, and whose it was.
//!
//! Each forced release leaves an entry in a cell of its own, written after the fact by whoever did it, and kept for
//! [`KEPT`]. Cells are listed by name, so the name counts down from the end of time: the newest entries come first. A
//! break is not undone by an entry that could not be written; that is logged, and said to nobody else. A break whose
//! answer was lost has an entry that says so; one that is asked for again may have two. Whoever can
//! write to the store can write entries: the audit tells of mistakes, it does not convict.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    backend::{Backend, BreakOutcome, Broken, Expect, LockState},
    client::Client,
    engine::time::wall_clock,
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    who::Who,
};

/// How long an entry is kept.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// What the names of the cells begin with.
const CELLS: &str = "audit:";

/// One forced release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// When, by the clock of whoever did it, in milliseconds since 1970.
    pub at: u64,
    /// The lock's name; in what is read, without the client's prefix.
    pub name: String,
    /// The acquisition that was broken.
    pub id: ClaimId,
    /// Who did it and why.
    #[serde(flatten)]
    pub broken: Broken,
    /// Whose it was, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Arc<Who>>,
    /// What it was held for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// The fence it was held under; zero if unknown.
    #[serde(default)]
    pub fence: u64,
    /// Whether the store's answer was lost: it may have been broken, or not.
    #[serde(default, skip_serializing_if = "is_sure")]
    pub unsure: bool,
}

/// One page of the audit.
#[derive(Clone, Debug, Default)]
pub struct AuditPage {
    /// The entries of this page, newest first.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

impl Client {
    /// Force-releases exactly this acquisition, in the name of this client's user. Its holder is told at its next
    /// renewal, or sooner where the store can; its work is not stopped by this, only its lock is. The
    /// [audit](Self::audit) has an entry of it.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the request is finished in the background.
    pub async fn break_hold(&self, name: &str, id: ClaimId, reason: &str) -> Result<BreakOutcome> {
        let who = self.who();
        let by = format!("{}@{}", who.user, who.host).into();
        self.break_hold_as(name, id, Broken { by, why: reason.into() }).await
    }

    /// The same in somebody else's name.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the request is finished in the background.
    pub async fn break_hold_as(&self, name: &str, id: ClaimId, broken: Broken) -> Result<BreakOutcome> {
        let key = Key::existing(self.prefix(), name)?;
        let backend = self.backend().clone();
        let work = async move {
            // Whose it was can only be asked before.
            let before = backend.inspect(&key).await.ok().flatten();
            let outcome = backend.break_hold(&key, id, &broken).await;
            let unsure = outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Indeterminate);
            if unsure || matches!(outcome, Ok(BreakOutcome::Broken)) {
                let entry = AuditEntry::of(&key, id, broken, before.as_ref());
                note(&*backend, AuditEntry { unsure, ..entry }).await;
            }
            outcome
        };
        let outcome: Result<BreakOutcome> = self.engine().carry_on(work).await;
        outcome.map_err(|error| error.during(Operation::Break).about(name))
    }

    /// Forced releases of names under this client's prefix, newest first, a page at a time; `cursor` comes from the
    /// page before. A page may be short and still have a next one.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn audit(&self, cursor: Option<&str>, limit: usize) -> Result<AuditPage> {
        let page = self.backend().list_cells(CELLS, cursor, limit.clamp(1, 1000)).await;
        let page = page.map_err(|error| error.during(Operation::Inspect))?;
        let entries = page.cells.iter().filter_map(|cell| {
            let mut entry: AuditEntry = serde_json::from_slice(&cell.value).ok()?;
            entry.name = entry.name.strip_prefix(self.prefix())?.to_owned();
            Some(entry)
        });
        Ok(AuditPage { entries: entries.collect(), next: page.next })
    }
}

impl AuditEntry {
    fn of(key: &Key, id: ClaimId, broken: Broken, before: Option<&LockState>) -> Self {
        let holder = before.and_then(|state| state.holders.iter().find(|holder| holder.id == id));
        Self {
            at: wall_clock(),
            name: key.full().to_owned(),
            id,
            broken,
            holder: holder.map(|holder| holder.who.clone()),
            label: holder.and_then(|holder| holder.label.clone()),
            fence: holder.map_or(0, |holder| holder.fence),
            unsure: false,
        }
    }

    /// Names count down, so that the newest is the first.
    fn cell(&self) -> String {
        format!("{CELLS}{:020}:{}", u64::MAX - self.at, self.id)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_sure(unsure: &bool) -> bool {
    !unsure
}

async fn note(backend: &dyn Backend, entry: AuditEntry) {
    let written = match serde_json::to_vec(&entry) {
        Ok(value) => backend.write_cell(&entry.cell(), Expect::Absent, &value, Some(KEPT)).await,
        Err(error) => Err(Error::config(Operation::Cell, "an entry cannot be written").because(error)),
    };
    // A conflict is a repeated request that finds its own entry.
    if let Err(error) = written {
        tracing::warn!(name = entry.name, %error, "a forced release is missing from the audit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Memory;

    #[tokio::test]
    async fn every_break_is_in_the_audit_with_whose_it_was_newest_first() {
        let client = Client::builder(Memory::new()).prefix("shop:").build();
        for name in ["a", "b"] {
            let guard = client.lock(name).label("nightly").acquire().await.unwrap();
            let outcome = client.break_hold(name, guard.id(), "stuck").await.unwrap();
            assert_eq!(outcome, BreakOutcome::Broken);
            let entry = client.audit(None, 1).await.unwrap().entries.pop().unwrap();
            assert_eq!((&*entry.name, entry.id, entry.fence), (name, guard.id(), guard.fence()));
            assert_eq!((&*entry.broken.why, entry.label.as_deref()), ("stuck", Some("nightly")));
            assert_eq!(entry.holder.as_deref(), Some(client.who()));
            let by = format!("{}@{}", client.who().user, client.who().host);
            assert_eq!(*entry.broken.by, *by);
            while wall_clock() == entry.at {
                tokio::task::yield_now().await;
            }
        }
        let names: Vec<_> =
            client.audit(None, 100).await.unwrap().entries.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["b", "a"]);
    }

    #[tokio::test]
    async fn what_broke_nothing_is_not_in_the_audit() {
        let client = Client::new(Memory::new());
        let guard = client.lock("a").acquire().await.unwrap();
        let id = guard.id();
        guard.release().await.unwrap();
        assert_eq!(client.break_hold("a", id, "late").await.unwrap(), BreakOutcome::NotHeld);
        assert!(client.audit(None, 10).await.unwrap().entries.is_empty());
    }
}
