//! The seam: what a store must be able to do, and what it must promise.
//!
//! A [`Backend`] makes one [`Claim`] per acquisition. A claim can try, wait for a reason to try again, and remove
//! its traces; the engine does all the rest, once for every store: waiting, timing, renewing, retrying, noticing
//! loss, cleaning up.
//!
//! # The contract
//!
//! The conformance suite has a test for each of these.
//!
//! - **C1 Claiming is silent.** [`Backend::claim`] does no I/O. The id exists before anything is sent, and every
//!   trace in the store bears it.
//! - **C2 Attempting is idempotent by id.** Repeating an attempt after a lost reply finds the earlier result; it
//!   never queues twice and never counts twice.
//! - **C3 Only an answered attempt grants.** What is not known is an `Err` of kind `Indeterminate`; the engine asks
//!   again by the same id, or withdraws.
//! - **C4 The bell is level-triggered.** Any release after an attempt answered `Busy` completes the next
//!   [`Claim::changed`]. The first `changed` may return as soon as it is armed; spurious returns are allowed, the
//!   engine limits their rate.
//! - **C5 Only waits are dropped.** The engine drops `changed` at will. `attempt`, `recount`, `release` and `renew`
//!   run to their end or to the store's own time-out; they are never raced against a caller.
//! - **C6 Release defeats late requests.** After an attempt whose answer was lost, `release` must also stop that
//!   request if it is still on its way.
//! - **C7 Two clocks, never compared.** The store's clock decides expiry; the holder's boot clock decides belief,
//!   counted from before the winning request was sent.
//! - **C8 Fences grow.** Per name strictly, in the order of grants, across release, expiry, forced release and
//!   restart; how strongly a store can promise that is its [`Guarantee`].

mod cell;
mod claim;
mod finding;
mod info;
mod limiter;
mod memory;
mod outcome;
mod polling;
mod presence;
mod quorum;
mod rate;
pub mod record;
mod recorded;
mod rumour;
mod state;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::{
    cell::{Cell, CellPage, CellWrite, Expect},
    claim::{Attempt, ClaimSpec, Grant, Holds, LatchStep, Life, Mode, Release, Renew, Renewal, Shape},
    finding::{Finding, Severity},
    info::{Capabilities, Guarantee, Level, StoreInfo},
    memory::Memory,
    outcome::{Broken, Busy, Loss},
    polling::Polling,
    presence::{Sign, Standing},
    quorum::{Quorum, QuorumOptions},
    rate::{Rate, RateAnswer, RateStep, Share},
    recorded::{Bell, RecordStore, Recorded},
    rumour::{Rumour, Rumours},
    state::{BreakOutcome, Holder, Kind, LockPage, LockState, Waiter},
};
use crate::{
    error::{Error, ErrorKind, Operation, Result},
    id::{ClaimId, ClientId},
    key::Key,
    who::Who,
};

/// A place where locks live.
///
/// Object-safe on purpose: users hold a `Client`, never a `Client<SomeStore<SomeTls>>`.
#[async_trait]
pub trait Backend: std::fmt::Debug + Send + Sync + 'static {
    /// What this store is and can do. Constant for the backend's life.
    fn info(&self) -> &StoreInfo;

    /// Prepares one contender. No I/O, cannot fail, cannot block.
    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim>;

    /// Renews leases, one answer per item in the same order; one item's trouble never touches another's. Never
    /// creates a lock and never shortens a lease: requests may overtake each other. An `Err` means "unknown": it
    /// neither extends nor ends a lease.
    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>>;

    /// Releases an acquisition by its id alone: how a ticket is given back by a process that never had the claim.
    /// Idempotent.
    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release>;

    /// Takes a step on a latch and returns the count after it.
    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64>;

    /// Takes a step on a rate limiter. Every step may be repeated. Called only if [`Capabilities::rate`] says so.
    async fn rate(&self, key: &Key, step: RateStep) -> Result<RateAnswer> {
        let _ = (key, step);
        Err(self.info().without_limiters())
    }

    /// Takes note of who holds and who waits, for people to see; an empty list is a sign of life. All of it goes with
    /// the client. Called only if [`Capabilities::announce`] asks for it, and never before an acquire or a release.
    async fn announce(&self, who: &Who, signs: &[Sign]) -> Result<()> {
        let _ = (who, signs);
        Ok(())
    }

    /// Everything known of one name; `None` if nothing lives there.
    async fn inspect(&self, key: &Key) -> Result<Option<LockState>>;

    /// Names that begin with `prefix` and are in use, a page at a time, in an order of the store's own.
    /// `cursor` comes from the page before. What is in use all the while is shown, now and then twice: where names are
    /// walked while others come and go, or lie at several servers of which some are slow.
    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage>;

    /// Force-releases exactly this acquisition: its holder is told by its next renewal, or before it where the store has
    /// [`rumours`](Self::rumours), the fence moves on and waiters are woken.
    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome>;

    /// Listens for forced releases of this client's locks, where the store can tell of them. `None` where it cannot: there
    /// they are noticed by the next renewal. No I/O before the first poll, and called only for a client that has held
    /// a lock for a while: what was broken before that must be told too.
    fn rumours(&self, client: ClientId) -> Option<Rumours> {
        let _ = client;
        None
    }

    /// Reads a cell: a small versioned value beside the locks, for jobs, audits and the like.
    async fn read_cell(&self, name: &str) -> Result<Option<Cell>>;

    /// Writes a cell if it is as expected; with a `ttl` the cell is gone after that time.
    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<std::time::Duration>,
    ) -> Result<CellWrite>;

    /// Cells whose name begins with `prefix`, a page at a time, ordered by name. Those that begin with `history:` are
    /// only ever read by name, and a store need not list them.
    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage>;

    /// The store's wall clock, as the time since 1970: what decides which moment it is for programs whose own clocks
    /// differ. `None` from a store that has none to tell, which says so in [`Capabilities::clock`]. Leases go by it on no
    /// store: it may be set back.
    async fn wall_clock(&self) -> Result<Option<std::time::Duration>> {
        Ok(None)
    }

    /// Examines the store as one who wants to lock names that begin with `prefix`: is it set up so that its locks are
    /// worth what [`info`](Self::info) says? What cannot be found out is a note, not an error.
    async fn diagnose(&self, prefix: &str) -> Result<Vec<Finding>> {
        let _ = prefix;
        Ok(Vec::new())
    }

    /// Whether this store has anything against a name that is otherwise fine. No I/O.
    fn diagnose_name(&self, key: &Key) -> Vec<Finding> {
        let _ = key;
        Vec::new()
    }

    /// A descriptor whose last copy, when closed, ends this backend's session, where the store has such a thing.
    /// A helper process that keeps a copy keeps the session's locks held for as long as it lives.
    #[cfg(unix)]
    fn session(&self) -> Option<std::os::fd::OwnedFd> {
        None
    }

    /// Ends the session and closes connections. Locks still held by it may be granted to others from then on.
    async fn close(&self) -> Result<()>;
}

/// One contender, from its first attempt to its last trace. Owned by one task at a time, never shared.
#[async_trait]
pub trait Claim: std::fmt::Debug + Send {
    /// One try that does not wait. Stores with a line join it here.
    async fn attempt(&mut self) -> Result<Attempt>;

    /// The same, by a store that can answer on the spot because it is within this process: saves a future. `None`
    /// from any other.
    fn attempt_now(&mut self) -> Option<Result<Attempt>> {
        None
    }

    /// Completes when another attempt is worth making. May be spurious; may be dropped and loses nothing by it.
    async fn changed(&mut self) -> Result<()>;

    /// Writes how often the owner holds this claim, absolutely, if it still holds it at all.
    async fn recount(&mut self, holds: Holds) -> Result<Renewal>;

    /// Lets no later grant of this name have a fence below or equal to this one, if this claim still holds it: from
    /// then on that is its own fence, unless it had a greater one. How a quorum of stores makes one fence of many; a
    /// store that cannot do it refuses with the kind `Unsupported` and cannot be a member of a quorum.
    async fn raise(&mut self, fence: u64) -> Result<Renewal> {
        let _ = fence;
        let message = "this store cannot raise a fence, so it cannot be a member of a quorum";
        Err(Error::new(ErrorKind::Unsupported, Operation::Acquire, message))
    }

    /// Removes every trace of this claim, whatever its state. Idempotent.
    async fn release(&mut self) -> Result<Release>;

    /// The same, on the spot; `None` where [`attempt_now`](Self::attempt_now) is.
    fn release_now(&mut self) -> Option<Result<Release>> {
        None
    }
}
