//! The scenarios: what each is for, and how large it is unless told otherwise.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// A way to use locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scenario {
    /// Each task takes and gives back a lock of its own
    Uncontended,
    /// All tasks add one to a counter under one lock; the sum must be exact
    Counter,
    /// A lock passes between two clients, one waiting while the other holds it
    Handoff,
    /// Many wait for one lock that is held, and get it one after the other
    Waiters,
    /// One task in ten writes, the others read
    Rw,
    /// Tasks share eight permits
    Semaphore,
    /// Many locks are kept alive
    Held,
    /// Everything at once, for a long time; only if it is asked for
    Soak,
}

impl Scenario {
    /// What runs if nothing is asked for: all that ends soon.
    pub(crate) fn usual() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|scenario| *scenario != Self::Soak).collect()
    }

    /// As the command line calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::Counter => "counter",
            Self::Handoff => "handoff",
            Self::Waiters => "waiters",
            Self::Rw => "rw",
            Self::Semaphore => "semaphore",
            Self::Held => "held",
            Self::Soak => "soak",
        }
    }

    /// What one operation is, and what its latency is the time of.
    pub(crate) fn operation(self) -> &'static str {
        match self {
            Self::Uncontended => "acquire and release",
            Self::Counter | Self::Rw | Self::Semaphore | Self::Soak => "wait for the lock",
            Self::Handoff => "from release to the other's acquire",
            Self::Waiters => "from the release to each one's turn",
            Self::Held => "acquire",
        }
    }

    /// How many tasks, or locks to hold.
    pub(crate) fn tasks(self) -> usize {
        match self {
            Self::Uncontended | Self::Rw | Self::Semaphore | Self::Soak => 64,
            Self::Counter | Self::Held => 1000,
            Self::Waiters => 200,
            Self::Handoff => 2,
        }
    }

    /// How long it goes on; a counter ends by itself.
    pub(crate) fn time(self) -> Duration {
        Duration::from_secs(if self == Self::Soak { 60 } else { 3 })
    }

    /// Its tasks, if there is a choice.
    pub(crate) fn sized(self, asked: Option<usize>) -> usize {
        if self == Self::Handoff { self.tasks() } else { asked.unwrap_or_else(|| self.tasks()) }
    }
}
