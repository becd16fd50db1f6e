//! The audit: who broke which lock, when, why, and whose it was; and who paused a job, or let it go on.
//!
//! Each forced release leaves an entry in a cell of its own, written after the fact by whoever did it, and kept for
//! [`KEPT`]. Cells are listed by name, so the name counts down from the end of time: the newest entries come first. A
//! break is not undone by an entry that could not be written; whoever broke is told, and the log has what the entry would
//! have said. A break whose answer was lost has an entry that says so; one that is asked for again may have two. Whoever
//! can write to the store can write entries: the audit tells of mistakes, it does not convict.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    backend::{Backend, BreakOutcome, Broken, Expect, Holder},
    client::Client,
    engine::{
        history::{self, Past},
        time::wall_clock,
    },
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    key::Key,
    who::Who,
};

/// How long an entry is kept.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// What the names of the cells begin with.
const CELLS: &str = "audit:";

/// The longest reason, in characters.
const REASON: usize = 500;

/// What an operator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Took a lock away from its holder.
    #[default]
    Break,
    /// Kept everybody from beginning a run of a job.
    Pause,
    /// Let a job go on.
    Resume,
    /// Made the store forget a job.
    Forget,
}

/// One act of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// When, by the clock of whoever did it, in milliseconds since 1970.
    pub at: u64,
    /// What was done.
    #[serde(default)]
    pub action: Action,
    /// The name of the lock, or of the job; in what is read, without the client's prefix.
    pub name: String,
    /// The acquisition that was broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ClaimId>,
    /// Who did it.
    pub by: Arc<str>,
    /// Why; empty where nobody has to say.
    pub why: Arc<str>,
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

/// What became of a forced release.
#[derive(Debug)]
#[non_exhaustive]
pub struct Forced {
    /// Whether it was broken.
    pub outcome: BreakOutcome,
    /// Why the audit has no entry of it, though it was broken.
    pub unaudited: Option<Error>,
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
    /// [audit](Self::audit) has an entry of it; one that could not be written is in the log, see
    /// [`break_hold_as`](Self::break_hold_as).
    ///
    /// # Errors
    /// `Config` for a reason of none or more than 500 characters.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the request is finished in the background.
    pub async fn break_hold(&self, name: &str, id: ClaimId, reason: &str) -> Result<BreakOutcome> {
        let broken = Broken { by: self.operator(), why: reason.into() };
        Ok(self.break_hold_as(name, id, broken).await?.outcome)
    }

    /// The same in somebody else's name. Tells, too, if the audit could not be written.
    ///
    /// # Errors
    /// `Config` for a reason of none or more than 500 characters.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the request is finished in the background.
    pub async fn break_hold_as(&self, name: &str, id: ClaimId, broken: Broken) -> Result<Forced> {
        let key = Key::existing(self.prefix(), name)?;
        let broken = Broken { by: broken.by, why: reason(&broken.why).map_err(|error| error.about(name))? };
        let backend = self.backend().clone();
        let forced = self.engine().carry_on(async move { force(&*backend, &key, id, broken).await }).await;
        forced.map_err(|error| error.during(Operation::Break).about(name))
    }

    /// What this client's user is called in what is kept.
    pub(crate) fn operator(&self) -> Arc<str> {
        let who = self.who();
        format!("{}@{}", who.user, who.host).into()
    }

    /// Takes note of what was done to a job. What cannot be written is in the log.
    pub(crate) async fn note_act(&self, action: Action, key: &Key, by: &str, why: &str) {
        let entry = AuditEntry::new(action, key, by.into(), why.into());
        let (backend, cell) = (self.backend().clone(), entry.cell(self.engine().ids.next()));
        // Said in the log where it could not be written.
        drop(self.engine().carry_on(async move { note(&*backend, &cell, entry).await }).await);
    }

    /// What operators did to names under this client's prefix, newest first, a page at a time; `cursor` comes from the
    /// page before. A page may be short and still have a next one.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn audit(&self, cursor: Option<&str>, limit: usize) -> Result<AuditPage> {
        let ours = Key::beginning(self.prefix(), "")?;
        let page = self.backend().list_cells(CELLS, cursor, limit.clamp(1, 1000)).await;
        let page = page.map_err(|error| error.during(Operation::Inspect))?;
        let entries = page.cells.iter().filter_map(|cell| {
            let mut entry: AuditEntry = serde_json::from_slice(&cell.value).ok()?;
            entry.name = entry.name.strip_prefix(&ours)?.to_owned();
            Some(entry)
        });
        Ok(AuditPage { entries: entries.collect(), next: page.next })
    }
}

impl AuditEntry {
    fn new(action: Action, key: &Key, by: Arc<str>, why: Arc<str>) -> Self {
        let (at, name) = (wall_clock(), key.full().to_owned());
        Self { at, action, name, id: None, by, why, holder: None, label: None, fence: 0, unsure: false }
    }

    fn of_break(key: &Key, id: ClaimId, broken: Broken, holder: Option<&Holder>) -> Self {
        Self {
            id: Some(id),
            holder: holder.map(|holder| holder.who.clone()),
            label: holder.and_then(|holder| holder.label.clone()),
            fence: holder.map_or(0, |holder| holder.fence),
            ..Self::new(Action::Break, key, broken.by, broken.why)
        }
    }

    /// Names count down, so that the newest is the first.
    fn cell(&self, id: ClaimId) -> String {
        format!("{CELLS}{:020}:{id}", u64::MAX - self.at)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_sure(unsure: &bool) -> bool {
    !unsure
}

/// Breaks a hold, and writes down that it was: in the audit, and in the history of the name, as whoever held it may be gone.
async fn force(backend: &dyn Backend, key: &Key, id: ClaimId, broken: Broken) -> Result<Forced> {
    // Whose it was can only be asked before.
    let before = backend.inspect(key).await.ok().flatten();
    let holder = before.iter().flat_map(|state| &state.holders).find(|holder| holder.id == id);
    let outcome = backend.break_hold(key, id, &broken).await;
    let unsure = outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Indeterminate);
    let mut unaudited = None;
    if unsure || matches!(outcome, Ok(BreakOutcome::Broken)) {
        let past = holder.filter(|_| !unsure).map(|holder| Past::seen(holder, Some(&broken)));
        let entry = AuditEntry { unsure, ..AuditEntry::of_break(key, id, broken, holder) };
        unaudited = note(backend, &entry.cell(id), entry).await.err();
        if let Some(past) = past {
            history::write_if_missing(backend, key, past).await;
        }
    }
    Ok(Forced { outcome: outcome?, unaudited })
}

/// Why somebody is forced to let go: whom it concerns is told, so it has to say something.
fn reason(said: &str) -> Result<Arc<str>> {
    let said = said.trim();
    if said.is_empty() || said.chars().count() > REASON {
        let message =
            format!("say why, in 1 to {REASON} characters: it is kept, and whom it concerns is told");
        return Err(Error::config(Operation::Break, message));
    }
    Ok(said.into())
}

async fn note(backend: &dyn Backend, cell: &str, entry: AuditEntry) -> Result<()> {
    let written = match serde_json::to_vec(&entry) {
        Ok(value) => backend.write_cell(cell, Expect::Absent, &value, Some(KEPT)).await,
        Err(error) => Err(Error::config(Operation::Cell, "an entry cannot be written").because(error)),
    };
    // A conflict is a repeated request that finds its own entry.
    let Err(error) = written else { return Ok(()) };
    let AuditEntry { action, name, id, by, why, .. } = entry;
    tracing::warn!(?action, name, id = id.map(tracing::field::display), %by, %why, %error, "an act is missing from the audit");
    Err(error)
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
            assert_eq!((&*entry.name, entry.id, entry.fence), (name, Some(guard.id()), guard.fence()));
            assert_eq!(entry.action, Action::Break);
            assert_eq!((&*entry.why, entry.label.as_deref()), ("stuck", Some("nightly")));
            assert_eq!(entry.holder.as_deref(), Some(client.who()));
            assert_eq!(*entry.by, *format!("{}@{}", client.who().user, client.who().host));
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

    #[tokio::test]
    async fn whoever_breaks_says_why_in_few_words() {
        let client = Client::new(Memory::new());
        let guard = client.lock("a").acquire().await.unwrap();
        for reason in ["", " \n", &"x".repeat(REASON + 1)] {
            let error = client.break_hold("a", guard.id(), reason).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.operation()),
                (ErrorKind::Config, Operation::Break),
                "{reason:?}"
            );
        }
        assert!(guard.check().is_ok() && client.audit(None, 10).await.unwrap().entries.is_empty());
        let broken = client.break_hold("a", guard.id(), &"锁".repeat(REASON)).await.unwrap();
        assert_eq!(broken, BreakOutcome::Broken);
    }

    #[tokio::test]
    async fn who_paused_a_job_and_who_let_it_go_on_stays_in_the_audit() {
        let client = Client::builder(Memory::new()).prefix("shop:").build();
        let job = client.job("nightly");
        job.resume().await.unwrap();
        assert!(client.audit(None, 10).await.unwrap().entries.is_empty(), "it was not paused");
        job.pause_as("anna", "the disk is full").await.unwrap();
        let paused = client.audit(None, 10).await.unwrap().entries.pop().unwrap();
        assert_eq!((paused.action, &*paused.name, paused.id), (Action::Pause, "nightly", None));
        assert_eq!((&*paused.by, &*paused.why), ("anna", "the disk is full"));
        while wall_clock() == paused.at {
            tokio::task::yield_now().await;
        }
        job.resume_as("bob").await.unwrap();
        let resumed = client.audit(None, 1).await.unwrap().entries.pop().unwrap();
        assert_eq!((resumed.action, &*resumed.by, &*resumed.why), (Action::Resume, "bob", ""));
        job.forget().await.unwrap();
        let acts: Vec<_> = client.audit(None, 10).await.unwrap().entries;
        assert_eq!(acts.len(), 3);
        assert!(acts.iter().any(|entry| entry.action == Action::Forget));
    }
}
