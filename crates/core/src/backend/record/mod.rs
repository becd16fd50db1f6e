//! The record: all that a store keeps of one name, as a value.
//!
//! A store that offers compare-and-set and no more keeps one [`Record`] per name and changes it by [`Step`]s.
//! The transitions are pure functions of the record, the step and the [`Surroundings`] (the store's clock and
//! who is alive), so exclusive and shared mode, permits, the fair line, latches and forced release are written and
//! tested once for every such store.
//!
//! The fence of a record only grows. A record with nothing left in it may be removed by its store, which must then
//! raise a store-wide floor to at least the removed fence: a new record starts at the floor.

mod latch;
mod lock;
mod step;
mod view;

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

pub use self::step::{Answer, Applied, Step, Wake};
use super::{Broken, Kind, Mode};
use crate::{
    call_site::CallSite,
    error::{Error, ErrorKind, Operation, Result},
    id::{ClaimId, ClientId},
    who::Who,
};

/// The format this version writes. Older ones are read; newer ones are refused by name.
pub const FORMAT: u32 = 1;

/// A fence above this was not made by counting: there must be room to count on.
const MAX_FENCE: u64 = u64::MAX / 2;

/// How long a place in line lasts without a sign of life. A claim that waits gives one every third of this.
pub const WAIT_LEASE: Duration = Duration::from_secs(15);

/// A point on the store's clock, in microseconds from a start of the store's choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    pub(super) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_micros().try_into().unwrap_or(u64::MAX)))
    }

    fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// What a transition may know besides the record: the store's clock and the sessions that live.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The store's time, read within the transaction.
    pub now: Moment,
    /// The session of the client that takes the step, where the store has sessions.
    pub session: Option<ClientId>,
    /// How many waiters outside the fair line a record lists. Those beyond still wait; they are only not named and
    /// not woken, so that a crowd cannot make every step on the name slow where a record is read and written whole.
    pub crowd: usize,
    /// Whether a session lives. Asked only of those who stand in somebody's way.
    pub alive: &'a dyn Fn(ClientId) -> bool,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("now", &self.now)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// All that a store keeps of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format: u32,
    fence: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    holders: Vec<Held>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiters: Vec<Waiting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latch: Option<latch::Count>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    broken: Vec<Mark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spent: Vec<Spent>,
}

/// An acquisition that holds the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    id: ClaimId,
    mode: Mode,
    fence: u64,
    count: u32,
    since: Moment,
    expires: Moment,
    #[serde(flatten)]
    person: Person,
}

/// An acquisition that waits for the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    id: ClaimId,
    mode: Mode,
    fair: bool,
    since: Moment,
    expires: Moment,
    #[serde(flatten)]
    person: Person,
}

/// Who is behind an entry, and the session it ends with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Person {
    who: Arc<Who>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<CallSite>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<ClientId>,
}

/// A forced release its holder has not heard of yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    id: ClaimId,
    #[serde(flatten)]
    broken: Broken,
    until: Moment,
}

/// A claim withdrawn while one of its requests may still be on its way: that request must find nothing to win.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Spent {
    id: ClaimId,
    until: Moment,
}

impl Record {
    /// A record of a name nobody uses, starting above every fence the name may have had before.
    pub fn new(floor: u64) -> Self {
        let (holders, waiters, broken, spent) = Default::default();
        Self { format: FORMAT, fence: floor, holders, waiters, latch: None, broken, spent }
    }

    /// The same, where a record that nobody needs any more was: what it allocated is used again.
    pub(super) fn in_room_of(old: Option<Self>, floor: u64) -> Self {
        match old {
            Some(old) if old.is_vacant() => Self { fence: floor, ..old },
            _ => Self::new(floor),
        }
    }

    /// It has not the room of a crowd, which whatever comes next would keep.
    pub(super) fn is_small(&self) -> bool {
        self.waiters.capacity() <= 16 && self.holders.capacity() <= 16
    }

    /// The newest fence given out.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether this acquisition holds the name at this moment.
    pub fn is_held(&self, id: ClaimId, now: Moment) -> bool {
        self.holders.iter().any(|held| held.id == id && held.expires > now)
    }

    /// The session that this acquisition ends with, if it holds the name and ends with one.
    pub fn session_of(&self, id: ClaimId) -> Option<ClientId> {
        self.holders.iter().find(|held| held.id == id).and_then(|held| held.person.session)
    }

    /// Lets what this acquisition holds or waits for end with this session, if it ended with another. Says whether it did.
    pub fn adopt(&mut self, id: ClaimId, session: ClientId) -> bool {
        let held = self.holders.iter_mut().filter(|held| held.id == id).map(|held| &mut held.person);
        let waiting = self.waiters.iter_mut().filter(|waiting| waiting.id == id);
        let mut adopted = false;
        for person in held.chain(waiting.map(|waiting| &mut waiting.person)) {
            if person.session.is_some_and(|other| other != session) {
                person.session = Some(session);
                adopted = true;
            }
        }
        adopted
    }

    /// Nothing is left but the fence: the store may remove the record, raising its floor.
    pub fn is_vacant(&self) -> bool {
        self.holders.is_empty()
            && self.waiters.is_empty()
            && self.latch.is_none()
            && self.broken.is_empty()
            && self.spent.is_empty()
    }

    /// When time alone will have emptied it: until then it must be kept, and a store that can lets it go after that,
    /// raising its floor. `None` if only a step can end what is in it.
    pub fn ends(&self) -> Option<Moment> {
        let held = self.holders.iter().map(|held| held.expires);
        let waited = self.waiters.iter().map(|waiting| waiting.expires);
        let remembered = self.broken.iter().map(|mark| mark.until);
        let spent = self.spent.iter().map(|spent| spent.until);
        let latest = held.chain(waited).chain(remembered).chain(spent).max().unwrap_or_default();
        self.latch.is_none().then_some(latest)
    }

    /// The text a store keeps.
    pub fn encode(&self) -> String {
        // Neither map keys nor numbers in it can fail, so there is no error to pass on; an empty text would not decode.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what a store kept.
    pub fn decode(text: &str) -> Result<Self> {
        let read = serde_json::from_str::<Self>(text);
        match read {
            Ok(read) if read.format <= FORMAT && read.is_sound() => Ok(Self { format: FORMAT, ..read }),
            Ok(read) if read.format <= FORMAT => Err(unreadable("a number is out of range")),
            _ => Err(foreign(text)),
        }
    }

    /// Numbers that no record of ours has would break the arithmetic of the transitions.
    fn is_sound(&self) -> bool {
        self.fence <= MAX_FENCE && self.latch.as_ref().is_none_or(|latch| latch.count > 0)
    }

    /// Forgets whatever has run out on the store's clock. Says whether that changed anything.
    pub fn expire(&mut self, now: Moment) -> bool {
        let before = self.entries();
        self.holders.retain(|held| held.expires > now);
        self.waiters.retain(|waiting| waiting.expires > now);
        self.broken.retain(|mark| mark.until > now);
        self.spent.retain(|spent| spent.until > now);
        before != self.entries()
    }

    /// The same record, told from elsewhere: what was reckoned from fence zero and moment zero, reckoned from these.
    ///
    /// So a step may be sent before fence and time are known, to a server that knows both: it keeps what came of the
    /// step from zero, and beside it where zero was.
    #[must_use]
    pub fn reckoned_from(mut self, fence: u64, start: Moment) -> Self {
        let later = |moment: &mut Moment| moment.0 = moment.0.saturating_add(start.0);
        self.fence = self.fence.saturating_add(fence);
        for held in &mut self.holders {
            held.fence = held.fence.saturating_add(fence);
            later(&mut held.since);
            later(&mut held.expires);
        }
        for waiting in &mut self.waiters {
            later(&mut waiting.since);
            later(&mut waiting.expires);
        }
        for mark in &mut self.broken {
            later(&mut mark.until);
        }
        for spent in &mut self.spent {
            later(&mut spent.until);
        }
        self
    }

    /// What the name is in use as; `None` if it is free to become anything.
    pub fn kind(&self) -> Option<Kind> {
        if let Some(latch) = &self.latch {
            return Some(Kind::Latch { count: latch.count });
        }
        let modes = self.holders.iter().map(|held| held.mode);
        modes.chain(self.waiters.iter().map(|waiting| waiting.mode)).find_map(|mode| match mode {
            Mode::Exclusive | Mode::Shared => Some(Kind::Lock),
            Mode::Permits { of, .. } => Some(Kind::Semaphore { of: of.get() }),
            Mode::Open => None,
        })
    }

    /// Frees the name if only the dead use it as what does not fit. Says whether there were any, or what the
    /// living use it as.
    fn make_way(&mut self, fits: impl Fn(Kind) -> bool, around: &Surroundings<'_>) -> Result<bool, Kind> {
        if self.kind().is_none_or(&fits) {
            return Ok(false);
        }
        let mut living = self.clone();
        living.holders.retain(|held| held.person.lives(around));
        living.waiters.retain(|waiting| waiting.person.lives(around));
        if let Some(found) = living.kind().filter(|found| !fits(*found)) {
            return Err(found);
        }
        *self = living;
        Ok(true)
    }

    fn entries(&self) -> usize {
        self.holders.len() + self.waiters.len() + self.broken.len() + self.spent.len()
    }
}

/// Why a text is no record of this version.
fn foreign(text: &str) -> Error {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    match serde_json::from_str(text) {
        Ok(Version { format }) if format > FORMAT => {
            let message =
                format!("written by a newer Leasehold (format {format}, we know {FORMAT}); upgrade this one");
            Error::new(ErrorKind::Unsupported, Operation::Inspect, message)
        }
        Ok(_) => unreadable("something in it has another shape"),
        Err(error) => unreadable(error),
    }
}

fn unreadable(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let message = "this is not a record of ours; was the name used by another program?";
    Error::new(ErrorKind::Internal, Operation::Inspect, message).because(why)
}

impl Person {
    /// Lives as far as anybody can tell: its session does, or it has none.
    fn lives(&self, around: &Surroundings<'_>) -> bool {
        self.session.is_none_or(|session| Some(session) == around.session || (around.alive)(session))
    }
}
