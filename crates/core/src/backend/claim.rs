//! What the engine asks of a claim and what a claim answers: plain values, no behaviour.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Broken, Busy};
use crate::{call_site::CallSite, id::ClaimId, key::Key, who::Who};

/// Everything a store needs to know of one acquisition, checked and complete.
#[derive(Clone, Debug)]
pub struct ClaimSpec {
    /// Identity of this acquisition; on every trace it leaves.
    pub id: ClaimId,
    /// The name.
    pub key: Key,
    /// What is asked for.
    pub mode: Mode,
    /// How its trace should look, on a store that shares names with other programs.
    pub shape: Shape,
    /// The lease asked for; the grant says what was given.
    pub ttl: Duration,
    /// Stand in the store's own line, first come first served.
    pub fair: bool,
    /// How the grant ends by itself.
    pub life: Life,
    /// Who asks, for people.
    pub who: Arc<Who>,
    /// What for, for people.
    pub label: Option<Arc<str>>,
    /// Where in its code it was asked for, for people.
    pub location: Option<CallSite>,
    /// How many fences the grant reserves, at least one; it says the first of them. More than one only for
    /// exclusive claims, and only if [`Capabilities::cohort`](super::Capabilities::cohort) allows it.
    pub fences: u64,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Nobody else.
    Exclusive,
    /// Together with other shared holders.
    Shared,
    /// So many permits of a semaphore that has so many in all.
    Permits {
        /// How many are taken.
        take: NonZeroU32,
        /// How many there are.
        of: NonZeroU32,
    },
    /// A latch at zero. Grants nothing that could be held; it is a wait like any other.
    Open,
}

/// How the trace of a claim should look to other programs that use the same names in the same store. All shapes
/// exclude each other; stores that nobody else writes to have only one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// A lock.
    #[default]
    Lock,
    /// A side of a read-write lock.
    ReadWrite,
    /// A lock that shares its fence with other programs.
    Fenced,
    /// The plainest trace there is: one value under the name.
    Plain,
    /// Permits of a number that other programs count down and up as well.
    Counting,
}

/// How a grant ends by itself when nobody releases it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Life {
    /// With the lease, or with the process that made it where the store can tell, whichever comes first.
    Session,
    /// With the lease only: for tickets that outlive the process.
    Detached,
}

/// The answer to one try.
#[derive(Debug)]
#[must_use]
pub enum Attempt {
    /// It is ours.
    Granted(Grant),
    /// Somebody else has it, or is before us.
    Busy(Busy),
}

/// A lock won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Greater than every earlier fence of this name.
    pub fence: u64,
    /// Ours for this long, counted from before the winning attempt was sent.
    pub granted: Duration,
}

/// How often an owner holds one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Times held exclusively (or, for permits, at all).
    pub exclusive: u32,
    /// Times held shared. With no exclusive hold left, the claim becomes shared: a downgrade.
    pub shared: u32,
}

impl Holds {
    /// The holds of a claim just won in this mode.
    pub fn first(mode: Mode) -> Self {
        match mode {
            Mode::Shared => Self { exclusive: 0, shared: 1 },
            _ => Self { exclusive: 1, shared: 0 },
        }
    }

    /// Holds in all.
    pub fn total(self) -> u32 {
        self.exclusive + self.shared
    }
}

/// One lease to renew.
#[derive(Clone, Debug)]
pub struct Renew {
    /// The name.
    pub key: Key,
    /// The acquisition; another one's lease is never touched.
    pub id: ClaimId,
    /// The mode it was acquired in.
    pub mode: Mode,
    /// The lease asked for, from now.
    pub ttl: Duration,
}

/// What became of a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Renewal {
    /// Still ours, for this long from before the request was sent.
    Renewed {
        /// The lease given; a store may give less than was asked for.
        granted: Duration,
    },
    /// Not ours any more; if an operator broke it, who and why.
    Lost(Option<Broken>),
}

/// What became of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Release {
    /// A trace was there, held or waiting, and is removed.
    Released,
    /// There was nothing of ours to remove; if an operator broke it, who and why.
    Gone(Option<Broken>),
}

/// A step on a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LatchStep {
    /// Read the count.
    Read,
    /// Set the count if it is zero; otherwise leave it.
    Arm {
        /// The new count.
        count: u64,
    },
    /// Count down by one, not below zero. The id makes a repeated request count once, for as long as the latch it
    /// counted on is armed and not too many others have counted since.
    CountDown {
        /// Identity of this count.
        id: ClaimId,
    },
}
