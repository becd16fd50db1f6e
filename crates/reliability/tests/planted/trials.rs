//! Which bug must be found by which check.

use leasehold::planted::Bug;

use crate::{
    checks::Check::{self, Memory, Redis, Scene},
    etcd, memory, redis, zookeeper,
};

/// One bug and the check that must find it.
pub(crate) struct Trial {
    pub(crate) bug: Bug,
    /// The mistake, in words.
    pub(crate) mistake: &'static str,
    /// Where it was made.
    pub(crate) seen: &'static str,
    pub(crate) check: Check,
}

/// Mistakes that are not planted, and why.
pub(crate) const WAITING: [&str; 1] =
    ["advisory lock through a pool: our locks in PostgreSQL and MySQL are rows, no session holds them"];

/// The seeded run: three clients with faults of their own, every kind of lock, the history judged.
const CHAOS: Check = Memory("chaos", "a_faulty_store_keeps_a_sound_history");

const REDISSON_FAIR: &str = "Redisson's fair lock (redisson #1104, #2099, #2278, #3730)";
const REDSYNC: &str = "redsync (`setNXOnExtend`)";
const REDISSON_RETRY: &str = "redisson #7367";
const REDISSON_BELL: &str = "redisson #1763, #3891, #5761";
const SHEDLOCK: &str = "ShedLock's Redis provider (`DEL` by default)";

macro_rules! trials {
    ($($bug:ident, $mistake:literal, $seen:expr => $($check:expr),+;)+) => {
        &[$($(Trial { bug: Bug::$bug, mistake: $mistake, seen: $seen, check: $check },)+)+]
    };
}

macro_rules! scene {
    ($store:ident::$name:ident) => {
        Scene(stringify!($store), stringify!($name), || Box::pin($store::$name()))
    };
}

/// All of them, in the order of `Bug`.
pub(crate) const TRIALS: &[Trial] = trials! {
    ReleaseWithoutOwner, "release without owner check", SHEDLOCK =>
        CHAOS, scene!(redis::a_late_release_frees_nobody_else);
    ReleaseByOwnerOnly, "release by owner only, not by acquisition", "etcd #22082" =>
        CHAOS;
    RenewCreates, "renew creates", REDSYNC =>
        Memory("contract", "a_renewal_touches_only_its_own"),
        Redis("contract", "a_renewal_touches_only_its_own");
    RetryWithoutId, "acquire retried without its id", REDISSON_RETRY =>
        Memory("contract", "attempting_is_idempotent_by_id"),
        Redis("contract", "attempting_is_idempotent_by_id");
    DeadlineAtReply, "deadline counted from the answer", "none we know" =>
        Memory("belief", "belief_counts_from_before_the_request"),
        scene!(memory::a_slow_grant_is_not_believed_for_longer);
    DeadlineAtFirst, "deadline counted from the first attempt", "none we know" =>
        Memory("belief", "a_wait_survives_a_suspend"),
        scene!(memory::what_was_waited_for_long_is_held);
    RenewerNotStopped, "renewer not stopped on release", "redisson #7272, #1966, #1626" =>
        Memory("dropping", "a_dropped_guard_is_released");
    SubscribeAfterCheck, "subscribe after check", REDISSON_BELL =>
        Memory("mutex", "two_thousand_hand_overs_lose_no_wake_up"),
        scene!(redis::a_release_before_the_bell_is_armed_is_heard);
    PlaceWithoutLease, "queue entry without lease", REDISSON_FAIR =>
        Memory("fair", "the_dead_in_line_are_skipped");
    ClientClock, "client clock in the queue", "Redisson's fair lock" =>
        scene!(redis::the_line_goes_by_one_clock);
    ReaderOverwrites, "reader TTL overwritten", "redisson #2144, #1604" =>
        scene!(redis::the_longest_reader_counts);
    PermitTwice, "permit returned twice", "redisson #4678, #6664" =>
        scene!(redis::permits_come_back_once);
    TokenFromIncr, "token from `INCR` lost at failover", "Redisson's fenced lock" =>
        scene!(redis::fences_grow_across_a_failover);
    WaitFromInfo, "`WAIT` count from `INFO`", "Redisson (`checkLockSyncedSlaves`)" =>
        scene!(redis::a_missing_replica_is_missed);
    CancelForgets, "cancel drops the compensation", "redsync (`lockContext`)" =>
        Memory("cancel", "acquiring_a_lock");
    DropDoesNothing, "drop is a no-op", "rslock under tokio" =>
        Memory("dropping", "a_dropped_guard_is_released");
    NoScriptUnknown, "`NOSCRIPT` treated as unknown", "none we know" =>
        scene!(redis::a_forgotten_script_is_sent_again);
    WaiterOutlives, "a waiter outlives its lease and is granted", "etcd's Lock call (Jepsen on etcd 3.4.3)" =>
        scene!(etcd::who_waited_beyond_its_lease_is_not_granted);
    AdoptsForeign, "the node of another session is adopted", "none we know" =>
        scene!(zookeeper::what_an_earlier_session_left_is_not_held);
};
