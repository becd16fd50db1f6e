//! One lock on several independent stores: it is held by whoever has it on more than half of them.
//!
//! This is the Redlock algorithm, over any [`Backend`]. All members are asked at once; an acquisition is won when more
//! than half of them granted it while the lease, counted from before the first request was sent, still runs. Any two
//! majorities share a member, and that member grants a name to one at a time: so do they all. A minority
//! that falls mute is waited for once, and briefly. Whoever did not get a majority gives back what it got, everywhere, before it is told.
//!
//! # What it promises
//! - Exclusive and shared locks exclude each other as on one store, through the silence or failure of any minority.
//! - Fences grow strictly from holder to holder: the fence is the greatest that any member gave, and before the lock is
//!   handed out the counters of a majority are raised to it. Every later majority has a member that counts on from it.
//!   Readers who acquire at the same time may be given the same fence; one who comes after another never is.
//! - A renewal needs a majority. One that has it asks those members again that lost the lock or never gave it, so that
//!   a member which was away joins in; without a majority a renewal makes nothing anew.
//!
//! # What it does not
//! - A member that forgets what it granted (restarted without its data) votes twice: it must persist every write, or be
//!   kept out for the longest lease after a restart.
//! - **No semaphores.** Members that each give out `n` permits do not bound the holders of a majority by `n`: of two
//!   permits on five members, 1-2-3, 1-4-5 and 2-3-4 are three holders, and no member gave more than two.
//! - **No fair line.** Members may see contenders come in different orders, and a line per member is then no line.
//! - **No latches, rate limiters, cells or cohorts.** Counting and comparing-and-setting need agreement on an order of
//!   steps, which a majority of answers alone is not.

mod claim;
mod member;
mod options;
mod refusals;
mod renew;
mod seat;
mod slots;
mod view;
mod vote;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::select_all};

pub use self::options::QuorumOptions;
use self::{
    claim::QuorumClaim,
    member::{Member, Round},
    slots::Slots,
};
use super::{
    Backend, BreakOutcome, Broken, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect, Finding, LatchStep,
    LockPage, LockState, Mode, Release, Renew, Renewal, Rumours, Sign, StoreInfo,
};
use crate::{
    error::{Operation, Result},
    id::{ClaimId, ClientId},
    key::Key,
    time::Clock,
    who::Who,
};

/// Several independent stores as one: what more than half of them grant is granted. Clones are the same one.
///
/// Locks and read-write locks, with tickets, re-entry and fences that grow; permits, latches, fair lines, cohorts, cells and
/// rates are refused, because a majority cannot decide them.
#[derive(Clone, Debug)]
pub struct Quorum {
    shared: Arc<Shared>,
    info: Arc<StoreInfo>,
}

/// What claims need of the whole.
#[derive(Debug)]
struct Shared {
    members: Arc<[Member]>,
    /// More than half of the members.
    quorum: usize,
    timeout: Duration,
    clock: Clock,
    /// What this process holds: whose members a renewal may ask again.
    held: Mutex<HashMap<ClaimId, Weak<Slots>>>,
}

impl Quorum {
    /// Makes one store of these.
    ///
    /// # Errors
    /// `Config` if there are fewer than three, or if two of them are the same store.
    pub fn new(members: Vec<Arc<dyn Backend>>, options: QuorumOptions) -> Result<Self> {
        options::check(&members)?;
        let info = options::describe(&members, &options);
        let quorum = members.len() / 2 + 1;
        let members = members.into_iter().map(Member::new).collect();
        let QuorumOptions { member_timeout: timeout, clock, .. } = options;
        let shared = Shared { members, quorum, timeout, clock, held: Mutex::default() };
        Ok(Self { shared: Arc::new(shared), info: Arc::new(info) })
    }
}

impl Shared {
    fn len(&self) -> usize {
        self.members.len()
    }

    /// How many may fail without harm.
    fn spare(&self) -> usize {
        self.len() - self.quorum
    }

    /// How long a member is given for one request about a lease of this length: far less than the lease.
    fn patience(&self, ttl: Duration) -> Duration {
        self.timeout.min((ttl / 8).max(Duration::from_millis(20)))
    }

    /// A round of requests that begins now.
    fn round<T: Send + 'static>(&self, patience: Duration) -> Round<T> {
        Round::begin(self.members.clone(), patience)
    }

    /// Asks all members the same and waits for all that are not mute, for those only until a majority has answered.
    async fn ask_all<T, F>(&self, ask: impl Fn(Arc<dyn Backend>) -> F) -> Vec<(usize, Result<T>)>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut round = self.round(self.timeout);
        for (at, member) in self.members.iter().enumerate() {
            round.add(at, ask(member.backend()));
        }
        let mut answers: Vec<(usize, Result<T>)> = Vec::new();
        let enough = |answers: &[(usize, Result<T>)]| {
            answers.iter().filter(|(_, answer)| answer.is_ok()).count() >= self.quorum
        };
        while !(enough(&answers) && round.waits_for_mute_ones_only()) {
            let Some(answer) = round.next().await else { break };
            answers.push(answer);
        }
        round.go_on();
        answers.sort_by_key(|(at, _)| *at);
        answers
    }

    fn held(&self) -> MutexGuard<'_, HashMap<ClaimId, Weak<Slots>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This claim holds: a renewal may ask its members again.
    fn keeps(&self, slots: &Arc<Slots>) {
        self.held().insert(slots.spec.id, Arc::downgrade(slots));
    }

    /// It holds no more, or is gone.
    fn keeps_no_more(&self, slots: &Arc<Slots>) {
        let mut held = self.held();
        if held.get(&slots.spec.id).is_some_and(|found| std::ptr::eq(found.as_ptr(), Arc::as_ptr(slots))) {
            held.remove(&slots.spec.id);
        }
    }
}

#[async_trait]
impl Backend for Quorum {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(QuorumClaim::new(self.shared.clone(), spec))
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        renew::renew(&self.shared, batch).await
    }

    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release> {
        self.shared.held().remove(&id);
        let ask = |member: Arc<dyn Backend>| {
            let key = key.clone();
            async move { member.release(&key, id, mode).await }
        };
        vote::released(&self.shared, self.shared.ask_all(ask).await)
    }

    async fn latch(&self, _key: &Key, _step: LatchStep) -> Result<u64> {
        Err(refusals::unsupported(Operation::Latch, "latches"))
    }

    async fn announce(&self, who: &Who, signs: &[Sign]) -> Result<()> {
        let ask = |member: Arc<dyn Backend>| {
            let (who, signs) = (who.clone(), signs.to_vec());
            async move {
                if member.info().capabilities.announce { member.announce(&who, &signs).await } else { Ok(()) }
            }
        };
        vote::majority(&self.shared, Operation::Inspect, self.shared.ask_all(ask).await).map(drop)
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        view::inspect(&self.shared, key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        view::list(&self.shared, prefix, cursor, limit).await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        // A contender that has only a minority for a moment holds nothing that could be broken.
        let state = view::inspect(&self.shared, key).await.map_err(|error| error.during(Operation::Break))?;
        if !state.is_some_and(|state| state.holders.iter().any(|holder| holder.id == id)) {
            return Ok(BreakOutcome::NotHeld);
        }
        let ask = |member: Arc<dyn Backend>| {
            let (key, broken) = (key.clone(), broken.clone());
            async move { member.break_hold(&key, id, &broken).await }
        };
        let outcomes = vote::majority(&self.shared, Operation::Break, self.shared.ask_all(ask).await)?;
        let is_broken = outcomes.contains(&BreakOutcome::Broken);
        Ok(if is_broken { BreakOutcome::Broken } else { BreakOutcome::NotHeld })
    }

    /// Of every member that has any: the others still have the lock when the first tells of it, so each is looked into.
    fn rumours(&self, client: ClientId) -> Option<Rumours> {
        let heard = self.shared.members.iter().filter_map(|member| member.backend().rumours(client));
        let heard: Vec<Rumours> = heard.collect();
        (!heard.is_empty()).then(|| select_all(heard).boxed())
    }

    async fn read_cell(&self, _name: &str) -> Result<Option<Cell>> {
        Err(refusals::unsupported(Operation::Cell, "cells"))
    }

    async fn write_cell(
        &self,
        _name: &str,
        _expect: Expect,
        _value: &[u8],
        _ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        Err(refusals::unsupported(Operation::Cell, "cells"))
    }

    async fn list_cells(&self, _prefix: &str, _cursor: Option<&str>, _limit: usize) -> Result<CellPage> {
        Err(refusals::unsupported(Operation::Cell, "cells"))
    }

    async fn diagnose(&self, prefix: &str) -> Result<Vec<Finding>> {
        Ok(view::diagnose(&self.shared, prefix).await)
    }

    async fn close(&self) -> Result<()> {
        let ask = |member: Arc<dyn Backend>| async move { member.close().await };
        vote::majority(&self.shared, Operation::Shutdown, self.shared.ask_all(ask).await).map(drop)
    }
}
