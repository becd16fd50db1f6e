//! The last holds of a name: who had it, for how long, after which wait, and how it ended.
//!
//! A holder writes it down itself, after the fact: the keeper does, a little later, in batches, and only what lasted or
//! waited for [`YOUNG`](super::presence::YOUNG) or ended badly. A lock that comes and goes costs nothing, and nothing here is on anybody's way to a lock.
//! Each name costs the store a cell for a day, so a client writes of at most [`NAMES`] names in a minute, and of as many
//! again whose holds ended badly. What cannot be written is forgotten, and a holder that was killed writes nothing: this is for people, not for proof.
//!
//! Of a ticket's hold nobody knows but the store: whoever releases it asks before, and writes. Whoever breaks a hold writes of
//! it, too, as its holder may be dead; what the holder itself writes stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    hold::Hold,
    presence::YOUNG,
    time::{Clock, Instant, wall_clock},
};
use crate::{
    backend::{Backend, Broken, CellWrite, Expect, Holder, Loss, Mode},
    call_site::CallSite,
    error::Result,
    id::ClaimId,
    key::Key,
    sync::{Mutex, MutexGuard},
    who::Who,
};

/// What the names of the cells begin with.
const CELLS: &str = "history:";

/// So many holds of a name are remembered, for so long after the last.
const REMEMBERED: usize = 16;
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// So many wait to be written; more are forgotten, the oldest first.
const PENDING: usize = 256;

/// So many different names are written of within [`MINUTE`]; of others only what ended badly, as many again.
const NAMES: usize = 256;
const MINUTE: Duration = Duration::from_secs(60);

/// How often a write is tried against others who write about the same name.
const TRIES: u32 = 4;

/// One hold that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Past {
    /// The acquisition.
    pub id: ClaimId,
    /// How it was held.
    pub mode: Mode,
    /// Its fence.
    pub fence: u64,
    /// Who held it.
    pub who: Arc<Who>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// Where in its code it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<CallSite>,
    /// How long it waited, in milliseconds.
    pub waited: u64,
    /// How long it was held, in milliseconds, as its holder may have believed.
    pub held: u64,
    /// When it ended, by its holder's wall clock, in milliseconds since 1970.
    pub ended: u64,
    /// How it ended: `released`, `expired`, `broken`, `gone`, `max_hold` or `shutdown`.
    pub how: Arc<str>,
    /// Who broke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
    /// Why it was broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    pending: Vec<(Key, Past)>,
    /// When this minute began, and the names written of since.
    minute: Option<Instant>,
    names: BTreeSet<Key>,
}

impl Notes {
    /// Whether this name may be written of now.
    fn has_room(&mut self, key: &Key, badly: bool, now: Instant) -> bool {
        if self.minute.is_none_or(|minute| minute.until(now) >= MINUTE) {
            (self.minute, self.names) = (Some(now), BTreeSet::new());
        }
        let most = if badly { 2 * NAMES } else { NAMES };
        let known = self.names.contains(key);
        if !known && self.names.len() < most {
            return self.names.insert(key.clone());
        }
        known
    }

    fn push(&mut self, key: &Key, past: Past) -> bool {
        if self.pending.len() >= PENDING {
            self.pending.remove(0);
        }
        self.pending.push((key.clone(), past));
        true
    }
}

impl History {
    /// Takes note of a hold that is over, if it is worth that. Says whether it was.
    pub(super) fn note(&self, hold: &Hold, loss: Option<&Loss>, clock: &Clock) -> bool {
        let badly = !matches!(loss, None | Some(Loss::Shutdown));
        // Most locks come and go before the keeper looks: those need not even be asked the time.
        if !badly && hold.waited < YOUNG && !hold.has_aged() {
            return false;
        }
        let now = clock.now();
        if !badly && hold.waited < YOUNG && hold.begun.until(now) < YOUNG {
            return false;
        }
        let mut notes = self.notes();
        notes.has_room(&hold.spec.key, badly, now) && notes.push(&hold.spec.key, Past::of(hold, loss, now))
    }

    /// The same for a hold that was nobody's process's and was given back, under the fence of its ticket. A store that does
    /// not know the fence any more does not know since when it was held either.
    pub(super) fn note_seen(&self, key: &Key, holder: Holder, fence: u64, clock: &Clock) -> bool {
        if holder.fence > 0 && holder.held_for < YOUNG {
            return false;
        }
        let mut notes = self.notes();
        let past = Past::seen(&Holder { fence, ..holder }, None);
        notes.has_room(key, false, clock.now()) && notes.push(key, past)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notes().pending.is_empty()
    }

    /// What is to be written now, by name.
    pub(super) fn take(&self) -> BTreeMap<Key, Vec<Past>> {
        let mut names: BTreeMap<Key, Vec<Past>> = BTreeMap::new();
        for (key, past) in std::mem::take(&mut self.notes().pending) {
            names.entry(key).or_default().push(past);
        }
        names
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Past {
    fn of(hold: &Hold, loss: Option<&Loss>, now: Instant) -> Self {
        let how = loss.map_or("released", Loss::word);
        let broken = match loss {
            Some(Loss::Broken(broken)) => Some(broken),
            _ => None,
        };
        let spec = &hold.spec;
        Self {
            id: spec.id,
            mode: spec.mode,
            fence: hold.fence,
            who: spec.who.clone(),
            label: spec.label.clone(),
            location: spec.location.clone(),
            waited: millis(hold.waited),
            // Whoever lets go late held it no longer than its lease.
            held: millis(hold.begun.until(now.min(hold.deadline()))),
            ended: wall_clock(),
            how: how.into(),
            by: broken.map(|broken| broken.by.clone()),
            why: broken.map(|broken| broken.why.clone()),
        }
    }
}

impl Past {
    /// What others can tell of a hold that they saw, and that is over now: its wait is not known to them.
    pub(crate) fn seen(holder: &Holder, broken: Option<&Broken>) -> Self {
        Self {
            id: holder.id,
            mode: holder.mode,
            fence: holder.fence,
            who: holder.who.clone(),
            label: holder.label.clone(),
            location: holder.location.clone(),
            waited: 0,
            held: millis(holder.held_for),
            ended: wall_clock(),
            how: if broken.is_some() { "broken" } else { "released" }.into(),
            by: broken.map(|broken| broken.by.clone()),
            why: broken.map(|broken| broken.why.clone()),
        }
    }
}

/// Writes of a hold for somebody else, who may have written of it already and knows more.
pub(crate) async fn write_if_missing(backend: &dyn Backend, key: &Key, past: Past) {
    let id = past.id;
    let fresh = move |known: &[Past]| {
        let is_new = known.iter().all(|past| past.id != id);
        if is_new { vec![past.clone()] } else { Vec::new() }
    };
    if let Err(error) = add(backend, key, &fresh).await {
        tracing::debug!(name = key.name(), %error, "a hold is missing from the history");
    }
}

/// Writes what is pending, one name after the other: there is no hurry.
pub(super) async fn write(backend: &dyn Backend, names: BTreeMap<Key, Vec<Past>>) {
    for (key, mut fresh) in names {
        fresh.reverse();
        if let Err(error) = add(backend, &key, &|_| fresh.clone()).await {
            tracing::debug!(name = key.name(), %error, "a hold is missing from the history");
        }
    }
}

/// The last holds of a name, newest first.
pub(crate) async fn read(backend: &dyn Backend, key: &Key) -> Result<Vec<Past>> {
    let cell = backend.read_cell(&cell(key)).await?;
    // What a newer version wrote is as good as nothing to us.
    Ok(cell.and_then(|cell| serde_json::from_slice(&cell.value).ok()).unwrap_or_default())
}

/// Puts before what is known of a name what is fresh, newest first.
async fn add(backend: &dyn Backend, key: &Key, fresh: &(dyn Fn(&[Past]) -> Vec<Past> + Sync)) -> Result<()> {
    let name = cell(key);
    for _ in 0..TRIES {
        let found = backend.read_cell(&name).await?;
        let expect = found.as_ref().map_or(Expect::Absent, |cell| Expect::Version(cell.version));
        let known: Vec<Past> =
            found.and_then(|cell| serde_json::from_slice(&cell.value).ok()).unwrap_or_default();
        let mut all = fresh(&known);
        if all.is_empty() {
            return Ok(());
        }
        // A write that was answered with an error may have been done.
        let others: Vec<Past> =
            known.into_iter().filter(|past| all.iter().all(|new| new.id != past.id)).collect();
        all.extend(others);
        all.truncate(REMEMBERED);
        let Ok(value) = serde_json::to_vec(&all) else { return Ok(()) };
        if let CellWrite::Written(_) = backend.write_cell(&name, expect, &value, Some(KEPT)).await? {
            return Ok(());
        }
    }
    Ok(())
}

fn cell(key: &Key) -> String {
    [CELLS, key.full()].concat()
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
