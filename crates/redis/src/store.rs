//! The store: Redis as a backend.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Key, Operation, Result, Who,
    backend::{
        Backend, BreakOutcome, Broken, Capabilities, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect,
        Finding, LatchStep, LockPage, LockState, Mode, RateAnswer, RateStep, Release, Renew, Renewal,
        Rumours, Sign, StoreInfo,
    },
};
use redis::{Cmd, Value};

use crate::{
    admin, answer, cells,
    claim::RedisClaim,
    config::{Layout, RedisConfig},
    connect::{self, Node, Topology, Weight},
    doctor::{self, Terms},
    error::{Fault, conflict, misfit},
    names, permit,
    presence::Presence,
    rate, rumours, scripts,
};

/// The most leases in one request: a script stops everything else on the server while it runs.
const BATCH: usize = 100;

/// Redis or Valkey as a store of locks. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Redis {
    shared: Arc<Shared>,
    info: Arc<StoreInfo>,
}

/// What claims need of the store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) topology: Box<dyn Topology>,
    pub(crate) presence: Presence,
    pub(crate) layout: Layout,
    terms: Terms,
}

impl Redis {
    /// Connects to the servers of this configuration.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be reached, `Denied` if it does not accept the credentials, `Config` if the
    /// configuration makes no sense.
    ///
    /// # Panics
    /// Outside of a tokio runtime: the connection needs one to live on.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn open(config: RedisConfig) -> Result<Self> {
        let topology = connect::open(config.clone()).await?;
        Ok(Self::on(&config, topology))
    }

    /// One server of several that answer by majority: it may be down for now. Who it is, is known only if it is up.
    pub(crate) async fn member(config: RedisConfig) -> Result<Self> {
        let mut member = Self::on(&config, connect::start(config.clone())?);
        let node = member.shared.topology.node("");
        match node.wire.call(redis::cmd("PING")).await.map_err(|fault| fault.into_error(Operation::Connect)) {
            Ok(_) => {
                if let Some(identity) = doctor::identity(&node).await {
                    member.info = Arc::new((*member.info).clone().with_identity(identity));
                }
                Ok(member)
            }
            Err(down) if matches!(down.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate) => {
                Ok(member)
            }
            Err(refused) => Err(refused),
        }
    }

    fn on(config: &RedisConfig, topology: Box<dyn Topology>) -> Self {
        let (scheme, place, layout) = (config.scheme(), config.place(), config.layout);
        let terms = Terms::of(config);
        let mut can = Capabilities::default();
        can.announce = true;
        can.rate = true;
        can.clock = true;
        let info = StoreInfo::new(scheme, place, topology.guarantee()).with_capabilities(can);
        let shared = Shared { topology, presence: Presence::default(), layout, terms };
        Self { shared: Arc::new(shared), info: Arc::new(info) }
    }

    fn node(&self, key: &Key) -> Arc<Node> {
        self.shared.topology.node(key.full())
    }

    fn verb(&self) -> &'static str {
        self.shared.topology.verb()
    }

    /// One request for leases on one server. If that does not have them all, one request for each: none waits for the
    /// trouble of another.
    async fn renew_together(&self, batch: &[&Renew]) -> Vec<Result<Renewal>> {
        let (Some(first), topology) = (batch.first(), &self.shared.topology) else { return Vec::new() };
        let name = first.key.full();
        let fill = |command: &mut Cmd| fill_renewals(command, batch);
        if batch.len() > 1 {
            match topology.run_once(name, Weight::Promise, &scripts::RENEW, fill).await {
                Err(fault) if fault.is_misplaced() => {
                    let each = batch.iter().map(async |renew| {
                        let fill = |command: &mut Cmd| fill_renewals(command, &[renew]);
                        topology.run(renew.key.full(), Weight::Promise, &scripts::RENEW, fill).await
                    });
                    return join_all(each).await.into_iter().flat_map(|answer| renewals(1, answer)).collect();
                }
                // Refused: nothing was done.
                Err(Fault::Refused(_)) => {}
                answer => return renewals(batch.len(), answer),
            }
        }
        renewals(batch.len(), topology.run(name, Weight::Promise, &scripts::RENEW, fill).await)
    }
}

fn fill_renewals(command: &mut Cmd, batch: &[&Renew]) {
    command.arg(batch.len());
    for renew in batch {
        command.arg(renew.key.full());
    }
    for renew in batch {
        let lease = renew.ttl.as_millis().max(1) as u64;
        command.arg(renew.id.to_string()).arg(lease).arg(permit::of(renew.id, renew.mode));
    }
}

/// One answer for each of so many.
fn renewals(count: usize, answer: Result<Value, Fault>) -> Vec<Result<Renewal>> {
    match answer {
        Ok(Value::Array(answers)) if answers.len() == count => answers.iter().map(answer::renewal).collect(),
        Ok(other) => (0..count).map(|_| Err(misfit(Operation::Renew, &other))).collect(),
        Err(fault) => (0..count).map(|_| Err(fault.clone().into_error(Operation::Renew))).collect(),
    }
}

#[async_trait]
impl Backend for Redis {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(RedisClaim::new(self.shared.clone(), spec))
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        // Apart by server and slot, so that one server's trouble touches no other's locks.
        let mut groups: Vec<(Arc<Node>, u16, Vec<usize>)> = Vec::new();
        for (at, renew) in batch.iter().enumerate() {
            let (node, slot) = (self.node(&renew.key), self.shared.topology.slot(renew.key.full()));
            let known = groups.iter_mut().find(|group| Arc::ptr_eq(&group.0, &node) && group.1 == slot);
            match known {
                Some(group) if group.2.len() < BATCH => group.2.push(at),
                _ => groups.insert(0, (node, slot, vec![at])),
            }
        }
        let rounds = groups.into_iter().map(async |(_, _, places)| {
            let renews: Vec<&Renew> = places.iter().map(|at| &batch[*at]).collect();
            let answers = self.renew_together(&renews).await;
            places.into_iter().zip(answers).collect::<Vec<_>>()
        });
        let mut answers: Vec<(usize, Result<Renewal>)> =
            join_all(rounds).await.into_iter().flatten().collect();
        answers.sort_unstable_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release> {
        let permits = permit::of(id, mode);
        let told = u8::from(self.shared.presence.is_told(id));
        let answer = self.shared.topology.run(key.full(), Weight::Plain, &scripts::UNLOCK, |command| {
            command.arg(1).arg(key.full()).arg(id.to_string()).arg(self.verb()).arg("").arg(&permits);
            command.arg(0).arg("leave").arg(told);
        });
        answer::release(&answer.await.map_err(|fault| fault.into_error(Operation::Release))?)
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        let (word, argument) = match step {
            LatchStep::Read => ("read", String::new()),
            LatchStep::Arm { count } if i64::try_from(count).is_err() => {
                return Err(Error::config(Operation::Latch, "a latch on Redis counts to 2^63 - 1 at most"));
            }
            LatchStep::Arm { count } => ("arm", count.to_string()),
            LatchStep::CountDown { id } => ("count", id.to_string()),
            _ => {
                let message = "this store does not know this step of a latch";
                return Err(Error::new(ErrorKind::Unsupported, Operation::Latch, message));
            }
        };
        let verb = self.shared.topology.verb_on(key.full(), &names::latch_channel(key.full()));
        let answer = self.shared.topology.run(key.full(), Weight::Plain, &scripts::LATCH, |command| {
            command.arg(1).arg(key.full()).arg(word).arg(&argument).arg(verb);
        });
        let answer = answer.await.map_err(|fault| fault.into_error(Operation::Latch))?;
        answer::count(&answer)?.map_err(|(kind, number)| conflict(Operation::Latch, &kind, number, "a latch"))
    }

    async fn rate(&self, key: &Key, step: RateStep) -> Result<RateAnswer> {
        rate::step(&*self.shared.topology, key.full(), step).await
    }

    async fn announce(&self, who: &Who, signs: &[Sign]) -> Result<()> {
        self.shared.presence.announce(&*self.shared.topology, who, signs).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        admin::inspect(&self.shared, key.full()).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        admin::list(&self.shared, prefix, cursor, limit).await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        admin::break_hold(&self.shared, key.full(), id, broken).await
    }

    fn rumours(&self, client: ClientId) -> Option<Rumours> {
        Some(rumours::listen(self.shared.clone(), client))
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        cells::read(&*self.shared.topology, name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        cells::write(&*self.shared.topology, name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        cells::list(&*self.shared.topology, prefix, cursor, limit).await
    }

    /// That of the primary that keeps the cells: all clients ask the same one.
    async fn wall_clock(&self) -> Result<Option<Duration>> {
        let answer = self.shared.topology.call(names::CELL, redis::cmd("TIME")).await;
        let answer = answer.map_err(|fault| fault.into_error(Operation::Inspect))?;
        let parts = answer::list(&answer).unwrap_or_default().iter().filter_map(answer::text);
        let numbers: Vec<u64> = parts.filter_map(|part| part.parse().ok()).collect();
        let [seconds, micros] = numbers[..] else { return Err(misfit(Operation::Inspect, &answer)) };
        Ok(Some(Duration::from_secs(seconds) + Duration::from_micros(micros)))
    }

    async fn diagnose(&self, prefix: &str) -> Result<Vec<Finding>> {
        doctor::examine(&*self.shared.topology, &self.shared.terms, prefix).await
    }

    fn diagnose_name(&self, key: &Key) -> Vec<Finding> {
        doctor::examine_name(&self.shared.terms, key.full())
    }

    async fn close(&self) -> Result<()> {
        self.shared.topology.close();
        Ok(())
    }
}
