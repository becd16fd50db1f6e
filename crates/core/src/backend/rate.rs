//! What a rate limiter is asked and what it answers: plain values, no behaviour.

use std::{num::NonZeroU32, time::Duration};

use crate::id::{ClaimId, ClientId};

/// How much a limiter lets through: so many permits in any stretch of so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub permits: u64,
    /// In how long.
    pub per: Duration,
    /// For whom.
    pub share: Share,
    /// The limiter is gone when nobody has used it for this long; `None` for never.
    pub keep: Option<Duration>,
}

/// Whose permits a limiter counts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Share {
    /// Those of all clients.
    #[default]
    All,
    /// Those of each client by themselves.
    Each,
}

/// A step on a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateStep {
    /// Set the rate, whatever it was, and forget what was taken. The client's own share is forgotten with it; that
    /// of other clients may be remembered until it has run out.
    Set {
        /// The rate.
        rate: Rate,
        /// Who sets it.
        client: ClientId,
    },
    /// Set the rate if none is set.
    TrySet {
        /// The rate.
        rate: Rate,
        /// Who sets it.
        client: ClientId,
    },
    /// Take so many permits, all or none. The id makes a repeated request take them once, for as long as they count.
    Take {
        /// Identity of this taking, and of the client that takes.
        id: ClaimId,
        /// How many.
        permits: NonZeroU32,
    },
    /// Read the rate and what this client could take.
    Read {
        /// Who asks.
        client: ClientId,
    },
    /// Remove the limiter.
    Remove {
        /// Who removes it.
        client: ClientId,
    },
}

/// The answer to a step on a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RateAnswer {
    /// To [`RateStep::Set`] and [`RateStep::TrySet`]: the rate is set.
    Set,
    /// To [`RateStep::TrySet`]: this rate was set before, and still is.
    Kept(Rate),
    /// To [`RateStep::Take`]: they are taken.
    Taken,
    /// To [`RateStep::Take`]: too many have been taken of late.
    Later {
        /// The earliest that asking again can help, unless the rate is changed.
        after: Duration,
    },
    /// To [`RateStep::Take`]: the rate never allows so many at once.
    TooMany {
        /// The most there ever are.
        rate: u64,
    },
    /// To [`RateStep::Read`]: the rate, and how many can be taken now.
    Has {
        /// The rate.
        rate: Rate,
        /// How many can be taken now.
        free: u64,
    },
    /// To [`RateStep::Remove`]: it was there.
    Removed,
    /// To every step but the setting ones: no rate is set.
    Unset,
}
