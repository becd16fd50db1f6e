//! What a store is, can do and promises.

use std::{fmt, time::Duration};

use crate::error::{Error, ErrorKind, Operation};

/// A store's description of itself. Constant while connected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreInfo {
    /// The scheme of its URL, such as `sqlite`.
    pub scheme: &'static str,
    /// Where it is, without secrets: what messages and listings show.
    pub address: String,
    /// What tells this store from every other though it has several addresses, such as a server's run id.
    pub identity: Option<String>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What its locks are worth.
    pub guarantee: Guarantee,
}

impl StoreInfo {
    /// Describes a store.
    pub fn new(scheme: &'static str, address: impl Into<String>, guarantee: Guarantee) -> Self {
        let capabilities = Capabilities::default();
        Self { scheme, address: address.into(), identity: None, capabilities, guarantee }
    }

    /// The same store with what tells it from every other.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// The same store with other capabilities than the usual ones.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// What a store without rate limiters says to whoever asks it for one.
    pub(crate) fn without_limiters(&self) -> Error {
        let message = format!("{} has no rate limiters; see the table of stores", self.scheme);
        Error::new(ErrorKind::Unsupported, Operation::Rate, message)
    }
}

/// What a store can do. Asking for more is refused at once with the kind `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a yes or no of its own, read by name")]
pub struct Capabilities {
    /// Shared holders.
    pub shared: bool,
    /// Semaphores.
    pub permits: bool,
    /// A line: first come first served.
    pub fair: bool,
    /// Latches.
    pub latch: bool,
    /// Cells: small versioned values beside the locks.
    pub cells: bool,
    /// Rate limiters.
    pub rate: bool,
    /// Claims that outlive the process that made them.
    pub detached: bool,
    /// Cohorts: its fences are a counter, of which a grant can reserve a block.
    pub cohort: bool,
    /// It cannot see by itself who holds and waits, and wants to be told. See [`Backend::announce`](super::Backend::announce).
    pub announce: bool,
    /// A wall clock that it tells. See [`Backend::wall_clock`](super::Backend::wall_clock).
    pub clock: bool,
    /// It is within this process and answers on the spot. See [`Claim::attempt_now`](super::Claim::attempt_now).
    pub at_once: bool,
    /// Shortest lease.
    pub min_ttl: Duration,
    /// Longest lease.
    pub max_ttl: Duration,
    /// Longest pause between two tries while waiting; a store with a sure bell can afford a long one.
    pub poll: Duration,
}

/// Everything but rate limiters, a clock and answers on the spot, with leases from 100 ms to a year: what a record store can do.
impl Default for Capabilities {
    fn default() -> Self {
        Self {
            shared: true,
            permits: true,
            fair: true,
            latch: true,
            cells: true,
            rate: false,
            detached: true,
            cohort: true,
            announce: false,
            clock: false,
            at_once: false,
            min_ttl: Duration::from_millis(100),
            max_ttl: Duration::from_secs(365 * 24 * 3600),
            poll: Duration::from_secs(5),
        }
    }
}

/// How strong a store's locks are, and what would break them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantee {
    /// The level.
    pub level: Level,
    /// When two clients could still be granted one lock, in a sentence.
    pub unless: &'static str,
}

impl Guarantee {
    /// A level and what would break it.
    pub const fn new(level: Level, unless: &'static str) -> Self {
        Self { level, unless }
    }
}

/// Levels of safety; each includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// A hint: saves work, may be granted twice.
    S0,
    /// Exclusive while clocks run at a sane rate and the store keeps its state.
    S1,
    /// Exclusive through the loss of any single node.
    S2,
    /// Fences grow through every fault, so a resource that checks them is safe from stale holders.
    S3,
    /// The lock and the protected write commit together.
    S4,
}

impl Level {
    /// What it promises, in a sentence for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::S0 => "a hint that saves work, and may be granted twice",
            Self::S1 => "exclusive while clocks run at a sane rate and the store keeps its state",
            Self::S2 => "exclusive through the loss of any single node",
            Self::S3 => {
                "fences grow through every fault, so a resource that checks them is safe from late holders"
            }
            Self::S4 => "the lock and the protected write commit together",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
