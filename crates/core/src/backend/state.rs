//! What operators see of a name: its kind, its holders, those who wait.
//!
//! Times are ages and remainders, reckoned by the store when it was asked: no clock of ours is compared with one
//! of its own.

use std::{fmt, sync::Arc, time::Duration};

use super::Mode;
use crate::{call_site::CallSite, id::ClaimId, who::Who};

/// Everything known of one name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockState {
    /// The name as the store has it, prefix included.
    pub name: String,
    /// What the name is in use as.
    pub kind: Kind,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// Who waits, in order where there is an order.
    pub waiters: Vec<Waiter>,
    /// The newest fence given out for this name.
    pub fence: u64,
}

impl LockState {
    /// A name in use, with nobody in it yet.
    pub fn new(name: impl Into<String>, kind: Kind, fence: u64) -> Self {
        Self { name: name.into(), kind, holders: Vec::new(), waiters: Vec::new(), fence }
    }
}

/// What a name is in use as. Exclusive and shared locks are one kind: they exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A lock, held exclusively or shared.
    Lock,
    /// A semaphore with so many permits in all.
    Semaphore {
        /// Permits in all.
        of: u32,
    },
    /// A latch with so many counts to go.
    Latch {
        /// Counts to go.
        count: u64,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str("a lock"),
            Self::Semaphore { of } => write!(f, "a semaphore of {of} permits"),
            Self::Latch { count } => write!(f, "a latch at {count}"),
        }
    }
}

/// One acquisition that is held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// Identity of the acquisition: what `break` wants.
    pub id: ClaimId,
    /// How it is held.
    pub mode: Mode,
    /// Its fence.
    pub fence: u64,
    /// How often its owner holds it.
    pub count: u32,
    /// How long it has been held.
    pub held_for: Duration,
    /// How long its lease still runs unless renewed.
    pub remaining: Duration,
    /// Who holds it.
    pub who: Arc<Who>,
    /// What for.
    pub label: Option<Arc<str>>,
    /// Where in its code it was asked for, as `file:line`.
    pub location: Option<CallSite>,
}

impl Holder {
    /// A holder with nothing known but identity; fill in what the store told.
    pub fn new(id: ClaimId, mode: Mode, fence: u64, who: Arc<Who>) -> Self {
        let (held_for, remaining) = (Duration::ZERO, Duration::ZERO);
        Self { id, mode, fence, count: 1, held_for, remaining, who, label: None, location: None }
    }
}

/// `backup (pid 4711 on web-3, user deploy) "nightly" for 3s, lease ends in 27s`
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.who)?;
        if let Some(label) = &self.label {
            write!(f, " {label:?}")?;
        }
        write!(f, " for {}, lease ends in {}", rounded(self.held_for), rounded(self.remaining))
    }
}

/// One contender that waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Waiter {
    /// Identity of the acquisition.
    pub id: ClaimId,
    /// What it waits for.
    pub mode: Mode,
    /// Stands in line, first come first served.
    pub fair: bool,
    /// How long it has waited.
    pub waited: Duration,
    /// Who waits.
    pub who: Arc<Who>,
    /// What for.
    pub label: Option<Arc<str>>,
    /// Where in its code it was asked for, as `file:line`.
    pub location: Option<CallSite>,
}

impl Waiter {
    /// A waiter with nothing known but identity; fill in what the store told.
    pub fn new(id: ClaimId, mode: Mode, who: Arc<Who>) -> Self {
        Self { id, mode, fair: false, waited: Duration::ZERO, who, label: None, location: None }
    }
}

/// One page of a listing.
#[derive(Clone, Debug, Default)]
pub struct LockPage {
    /// The names of this page.
    pub locks: Vec<LockState>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// What became of a forced release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum BreakOutcome {
    /// That acquisition held the name and does so no longer.
    Broken,
    /// That acquisition does not hold the name; nothing was changed.
    NotHeld,
}

/// Seconds with at most one decimal, as people read them.
fn rounded(duration: Duration) -> humantime::FormattedDuration {
    let unit = if duration < Duration::from_secs(10) { 100 } else { 1000 };
    let millis = duration.as_millis() as u64 / unit * unit;
    humantime::format_duration(Duration::from_millis(millis))
}
