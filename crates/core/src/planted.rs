//! Planted bugs: what other lock libraries got wrong, put into this one on purpose, to see which check finds it.
//!
//! The code asks [`planted`] at one line for each. Without the feature `planted-bugs` the answer is a constant `false`,
//! and nothing of a bug is left in what is built. With it every bug still sleeps, until `LEASEHOLD_PLANTED_BUG` names
//! one for the process. The feature is for tests: nothing that is shipped may have it.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bug {
    /// A release removes whoever holds the name.
    ReleaseWithoutOwner,
    /// A release removes whatever the same client holds, though it was acquired later.
    ReleaseByOwnerOnly,
    /// Renewing what is gone makes it anew.
    RenewCreates,
    /// An attempt that is repeated does not find what the first one won.
    RetryWithoutId,
    /// Belief counts from the answer instead of the request.
    DeadlineAtReply,
    /// Belief counts from the first request instead of the one that won.
    DeadlineAtFirst,
    /// The keeper goes on with what was released.
    RenewerNotStopped,
    /// The bell is armed after the last look, and nobody looks again.
    SubscribeAfterCheck,
    /// A place in line never ends by itself.
    PlaceWithoutLease,
    /// The line goes by the clocks of those who stand in it.
    ClientClock,
    /// A reader that joins sets the lease of all readers, also to less.
    ReaderOverwrites,
    /// Permits are given back again when their release is repeated.
    PermitTwice,
    /// Fences are counted by a number that a failover can lose.
    TokenFromIncr,
    /// Confirmation is asked of as many replicas as there happen to be.
    WaitFromInfo,
    /// What a cancelled acquire had won is not given back.
    CancelForgets,
    /// Dropping a guard does nothing.
    DropDoesNothing,
    /// A script that the server does not have is taken for one that may have run.
    NoScriptUnknown,
    /// Who waited is granted though its lease was over meanwhile.
    WaiterOutlives,
    /// The node of a session that is another's, or was ours before, is taken for our own.
    AdoptsForeign,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::ReleaseWithoutOwner,
        Self::ReleaseByOwnerOnly,
        Self::RenewCreates,
        Self::RetryWithoutId,
        Self::DeadlineAtReply,
        Self::DeadlineAtFirst,
        Self::RenewerNotStopped,
        Self::SubscribeAfterCheck,
        Self::PlaceWithoutLease,
        Self::ClientClock,
        Self::ReaderOverwrites,
        Self::PermitTwice,
        Self::TokenFromIncr,
        Self::WaitFromInfo,
        Self::CancelForgets,
        Self::DropDoesNothing,
        Self::NoScriptUnknown,
        Self::WaiterOutlives,
        Self::AdoptsForeign,
    ];

    /// What the variable calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReleaseWithoutOwner => "release-without-owner",
            Self::ReleaseByOwnerOnly => "release-by-owner-only",
            Self::RenewCreates => "renew-creates",
            Self::RetryWithoutId => "retry-without-id",
            Self::DeadlineAtReply => "deadline-at-reply",
            Self::DeadlineAtFirst => "deadline-at-first-attempt",
            Self::RenewerNotStopped => "renewer-not-stopped",
            Self::SubscribeAfterCheck => "subscribe-after-check",
            Self::PlaceWithoutLease => "place-without-lease",
            Self::ClientClock => "client-clock-in-line",
            Self::ReaderOverwrites => "reader-overwrites-lease",
            Self::PermitTwice => "permit-returned-twice",
            Self::TokenFromIncr => "token-from-incr",
            Self::WaitFromInfo => "wait-count-from-info",
            Self::CancelForgets => "cancel-forgets",
            Self::DropDoesNothing => "drop-does-nothing",
            Self::NoScriptUnknown => "noscript-unknown",
            Self::WaiterOutlives => "waiter-outlives-lease",
            Self::AdoptsForeign => "adopts-foreign-node",
        }
    }
}

/// The variable that chooses one.
pub const VARIABLE: &str = "LEASEHOLD_PLANTED_BUG";

/// Whether this bug is planted in this process.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it must be gone from what is built, also without optimisation across crates"
)]
pub const fn planted(_bug: Bug) -> bool {
    false
}

/// Whether this bug is planted in this process.
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<Bug>> = std::sync::LazyLock::new(|| {
        let name = std::env::var(VARIABLE).ok()?;
        Bug::ALL.into_iter().find(|bug| bug.name() == name)
    });
    *CHOSEN == Some(bug)
}
