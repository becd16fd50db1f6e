//! What a caller is told: who holds the lock it did not get, and how the lock it held was lost.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::Holder;

/// Somebody else has the lock.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Busy {
    /// Who holds it, as far as the store told.
    pub holders: Vec<Holder>,
    /// Our place in the line, counted from one, where there is a line.
    pub place: Option<usize>,
    /// How many are known to wait, ourselves not counted.
    pub waiters: usize,
    /// How many of them are likely to get it before us: the more there are, the less it helps to look again soon.
    pub ahead: usize,
    /// When another try is worth making even if no bell rings: the store's own hint.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.holders.as_slice() {
            [] => write!(f, "others are before us")?,
            [holder] => write!(f, "held by {holder}")?,
            [holder, others @ ..] => write!(f, "held by {holder} and {} more", others.len())?,
        }
        match (self.place, self.waiters) {
            (Some(place), _) => write!(f, "; we are number {place} in line"),
            (None, 0) => Ok(()),
            (None, waiters) => write!(f, "; {waiters} waiting"),
        }
    }
}

/// A forced release: who did it and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The operator.
    pub by: Arc<str>,
    /// The operator's reason.
    pub why: Arc<str>,
}

/// How a lock that was held came to be held no more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The lease ran out before it could be renewed.
    Expired,
    /// The lease was not renewed any more because `max_hold` was reached.
    MaxHold,
    /// The store no longer knows the lock: it was deleted, or the store lost it.
    Gone,
    /// An operator force-released it.
    Broken(Broken),
    /// The client was shut down.
    Shutdown,
}

/// What a store says of an acquisition it does not have: broken by somebody, or just not there.
impl From<Option<Broken>> for Loss {
    fn from(broken: Option<Broken>) -> Self {
        broken.map_or(Self::Gone, Self::Broken)
    }
}

impl Loss {
    /// The cause in a word, as histories and numbers have it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::MaxHold => "max_hold",
            Self::Gone => "gone",
            Self::Broken(_) => "broken",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("lost: the lease ran out before it could be renewed"),
            Self::MaxHold => f.write_str("lost: held for as long as max_hold allows"),
            Self::Gone => f.write_str("lost: the store no longer has this acquisition"),
            Self::Broken(Broken { by, why }) => write!(f, "lost: broken by {by}: {why}"),
            Self::Shutdown => f.write_str("lost: the client was shut down"),
        }
    }
}
