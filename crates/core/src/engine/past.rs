//! What is known of a job's runs: the one that goes on, and those of the past. Plain values, as the store keeps them and as
//! users see them.

use std::time::Duration;

use leasehold_schedule::Slot;
use serde::{Deserialize, Serialize};

use crate::{id::ClaimId, who::Who};

/// A job that an operator paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Paused {
    /// The operator.
    pub by: String,
    /// The operator's reason.
    pub why: String,
    /// When, as the time since 1970.
    #[serde(with = "millis")]
    pub since: Duration,
}

/// Who began a run, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Start {
    /// The acquisition of the job's lock that it runs under.
    pub id: ClaimId,
    /// The fence of that.
    pub fence: u64,
    /// The process.
    pub who: Who,
    /// When, as the time since 1970.
    #[serde(with = "millis")]
    pub at: Duration,
}

/// A run that goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Running {
    /// The slot it is for.
    pub slot: Slot,
    /// Who began it, and when.
    pub start: Start,
}

/// What became of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// It was run to its end.
    Done,
    /// The work said that it failed.
    Failed(String),
    /// The lock was lost, and the work was stopped.
    Lost(String),
    /// Whoever ran it ended without a word.
    Died,
    /// Nobody ran it, nor so many before it, down to this one.
    Missed {
        /// The first of them.
        from: Slot,
        /// How many; ten thousand may be more.
        count: u64,
    },
}

/// A slot of the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PastRun {
    /// The slot.
    pub slot: Slot,
    /// What became of it.
    pub ended: Ended,
    /// Who began it, and when; nobody for one that was missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How long it took, where that is known.
    #[serde(default, with = "maybe_millis", skip_serializing_if = "Option::is_none")]
    pub took: Option<Duration>,
}

/// How many slots ended how, since the job was first seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Totals {
    /// Run to the end.
    pub done: u64,
    /// Failed by its own word.
    pub failed: u64,
    /// Stopped because the lock was lost.
    pub lost: u64,
    /// Ended without a word.
    pub died: u64,
    /// Not run.
    pub missed: u64,
}

/// Times as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// The same for a time that may be missing.
pub(super) mod maybe_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the shape that serde wants")]
    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::millis::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
