//! A connection to one store, for synchronous code.

use std::{sync::Arc, time::Duration};

use tokio::runtime::RuntimeFlavor;

use super::{
    Election, IdSpace, Job, Latch, Lock, LockSet, RateLimiter, RwLock, Semaphore, wait, wait::runtime,
};
use crate::{
    AuditPage, ClaimId, Error, ErrorKind, Farewell, Forced, JobPage, Operation, Past, Result, Settings, Span,
    Stats, Ticket, Who,
    backend::{Backend, BreakOutcome, Broken, Finding, LockPage, LockState, StoreInfo},
};

/// Opens the store at this URL, as [`leasehold::connect`](crate::connect) does.
///
/// # Errors
/// As there; and `Unavailable` if the thread that renews leases cannot be started.
pub fn connect(url: &str) -> Result<Client> {
    connect_with(url, Settings::default())
}

/// As [`connect`], with what the program says about itself.
///
/// # Errors
/// As for [`connect`].
pub fn connect_with(url: &str, settings: Settings) -> Result<Client> {
    runtime()?;
    wait(crate::connect_with(url, settings)).map(Client)
}

front! {
    /// A client of one store, for synchronous code. Clones share everything.
    #[derive(Clone, Debug)]
    Client(crate::Client) like Client
    looks {
        lock(name: &str) -> Lock [lock: Lock(lock)];
        rwlock(name: &str) -> RwLock [lock: RwLock(lock)];
        semaphore(name: &str, of: u32) -> Semaphore [semaphore: Semaphore(semaphore)];
        latch(name: &str) -> Latch [latch: Latch(latch)];
        rate_limiter(name: &str) -> RateLimiter [limiter: RateLimiter(limiter)];
        election(name: &str) -> Election [election: Election(election)];
        job(name: &str) -> Job [job: Job(job)];
        ids(name: &str) -> IdSpace [ids: IdSpace(ids)];
        set() -> LockSet [set: LockSet(set)];
        info() -> &StoreInfo;
        who() -> &Who;
        prefix() -> &str;
        ttl() -> Duration;
        backend() -> &Arc<dyn Backend>;
        diagnose_name(name: &str) -> Result<Vec<Finding>>;
        stats() -> Stats;
    }
    waits {
        inspect(name: &str) -> Result<Option<LockState>>;
        list(prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage>;
        jobs(prefix: &str, cursor: Option<&str>, limit: usize) -> Result<JobPage>;
        break_hold(name: &str, id: ClaimId, reason: &str) -> Result<BreakOutcome>;
        break_hold_as(name: &str, id: ClaimId, broken: Broken) -> Result<Forced>;
        audit(cursor: Option<&str>, limit: usize) -> Result<AuditPage>;
        history(name: &str) -> Result<Vec<Past>>;
        elections(cursor: Option<&str>, limit: usize) -> Result<(Vec<String>, Option<String>)>;
        renew_ticket(ticket: &Ticket, ttl: impl Into<Span>) -> Result<Duration>;
        release_ticket(ticket: &Ticket) -> Result<()>;
        diagnose() -> Result<Vec<Finding>>;
        idle() -> ();
        shutdown(within: impl Into<Span>) -> Result<Farewell>;
    }
}

impl Client {
    /// The blocking front of a client that asynchronous code uses too.
    ///
    /// # Errors
    /// `WouldDeadlock` if that client lives on a current-thread runtime: whoever blocks that thread stops what it waits
    /// for. A client made by [`connect`] serves synchronous and asynchronous code alike.
    pub fn of(client: crate::Client) -> Result<Self> {
        if client.runtime().runtime_flavor() == RuntimeFlavor::CurrentThread {
            let message = "this client lives on a current-thread runtime, which blocking code would hold up; make it \
                           with leasehold::blocking::connect, or on a multi-threaded runtime";
            return Err(Error::new(ErrorKind::WouldDeadlock, Operation::Connect, message));
        }
        runtime()?;
        Ok(Self(client))
    }

    /// Opens the default client that the environment describes; see [`Config`](crate::Config).
    ///
    /// # Errors
    /// As for [`from_env`](crate::from_env()).
    pub fn from_env() -> Result<Self> {
        runtime()?;
        wait(crate::from_env()).map(Self)
    }

    /// The same client for asynchronous code, on any runtime that has timers.
    pub fn asynchronous(&self) -> &crate::Client {
        &self.0
    }
}

/// So that it can be [installed](crate::install), for synchronous and asynchronous code alike.
impl From<Client> for crate::Client {
    fn from(client: Client) -> Self {
        client.0
    }
}
