//! The store, as everything here asks it: whatever is asked is timed, in this one place.
//!
//! It is the only way to the client's questions, so that no route can forget to be counted. What asks nobody passes through
//! as it is. An acquisition that may wait is not timed: how long others hold a lock is not the store's doing.

use std::time::Duration;

use leasehold::{
    AuditPage, ClaimId, Client, Forced, JobPage, JobState, Leader, Lock, Past, Result, RwLock, Semaphore,
    Stats, Ticket,
    backend::{Broken, Finding, LockPage, LockState, StoreInfo},
    job::Paused,
};
use tokio::runtime::Handle;

use crate::times::{Op, Times};

/// One store, and how long it takes to answer. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    client: Client,
    times: Times,
}

impl Store {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, times: Times::default() }
    }

    pub(crate) fn times(&self) -> &Times {
        &self.times
    }

    pub(crate) async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.times.time(Op::List, self.client.list(prefix, cursor, limit)).await
    }

    pub(crate) async fn inspect(&self, name: &str) -> Result<Option<LockState>> {
        self.times.time(Op::Inspect, self.client.inspect(name)).await
    }

    pub(crate) async fn history(&self, name: &str) -> Result<Vec<Past>> {
        self.times.time(Op::History, self.client.history(name)).await
    }

    pub(crate) async fn break_hold(&self, name: &str, id: ClaimId, broken: Broken) -> Result<Forced> {
        self.times.time(Op::Break, self.client.break_hold_as(name, id, broken)).await
    }

    pub(crate) async fn acquire(&self, lock: Lock, wait: Duration) -> Result<(Ticket, Duration)> {
        let lock = lock.wait(wait);
        if wait.is_zero() {
            return self.times.time(Op::Acquire, lock.leased_ticket()).await;
        }
        lock.leased_ticket().await
    }

    pub(crate) async fn renew(&self, ticket: &Ticket, ttl: Duration) -> Result<Duration> {
        self.times.time(Op::Renew, self.client.renew_ticket(ticket, ttl)).await
    }

    pub(crate) async fn release(&self, ticket: &Ticket) -> Result<()> {
        self.times.time(Op::Release, self.client.release_ticket(ticket)).await
    }

    pub(crate) async fn audit(&self, cursor: Option<&str>, limit: usize) -> Result<AuditPage> {
        self.times.time(Op::Audit, self.client.audit(cursor, limit)).await
    }

    pub(crate) async fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<JobPage> {
        self.times.time(Op::Jobs, self.client.jobs("", cursor, limit)).await
    }

    pub(crate) async fn job(&self, name: &str) -> Result<Option<JobState>> {
        self.times.time(Op::Job, self.client.job(name).state()).await
    }

    pub(crate) async fn pause(&self, name: &str, by: &str, reason: &str) -> Result<Option<Paused>> {
        self.times.time(Op::Pause, self.client.job(name).pause_as(by, reason)).await
    }

    pub(crate) async fn resume(&self, name: &str, by: &str) -> Result<Option<Paused>> {
        self.times.time(Op::Resume, self.client.job(name).resume_as(by)).await
    }

    pub(crate) async fn elections(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<String>, Option<String>)> {
        self.times.time(Op::Elections, self.client.elections(cursor, limit)).await
    }

    pub(crate) async fn leader(&self, name: &str) -> Result<Option<Leader>> {
        self.times.time(Op::Leader, self.client.election(name).leader()).await
    }

    pub(crate) async fn examine(&self) -> Result<Vec<Finding>> {
        self.times.time(Op::Examine, self.client.diagnose()).await
    }

    /// What the store has against a name. Asks nobody, like everything below.
    pub(crate) fn examine_name(&self, name: &str) -> Result<Vec<Finding>> {
        self.client.diagnose_name(name)
    }

    pub(crate) fn lock(&self, name: &str) -> Lock {
        self.client.lock(name)
    }

    pub(crate) fn rwlock(&self, name: &str) -> RwLock {
        self.client.rwlock(name)
    }

    pub(crate) fn semaphore(&self, name: &str, of: u32) -> Semaphore {
        self.client.semaphore(name, of)
    }

    pub(crate) fn info(&self) -> &StoreInfo {
        self.client.info()
    }

    pub(crate) fn prefix(&self) -> &str {
        self.client.prefix()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.client.stats()
    }

    pub(crate) fn runtime(&self) -> &Handle {
        self.client.runtime()
    }
}
