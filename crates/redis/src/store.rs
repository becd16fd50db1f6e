//! The store: Redis as a backend.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, Error, ErrorKind, Key, Operation, Result, Who,
    backend::{
        Backend, BreakOutcome, Broken, Capabilities, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect,
        LatchStep, LockPage, LockState, Mode, Release, Renew, Renewal, Sign, StoreInfo,
    },
};
use redis::Value;

use crate::{
    admin, answer, cells,
    claim::RedisClaim,
    config::{Layout, RedisConfig},
    connect::{Node, Single, Topology},
    error::{conflict, misfit},
    permit,
    presence::Presence,
    scripts,
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
}

impl Redis {
    /// Connects to one server.
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
        let (scheme, place, layout) = (config.scheme(), config.place(), config.layout);
        let topology = Box::new(Single::open(Arc::new(config)).await?);
        let mut can = Capabilities::default();
        can.announce = true;
        let info = StoreInfo::new(scheme, place, topology.guarantee()).with_capabilities(can);
        let shared = Shared { topology, presence: Presence::default(), layout };
        Ok(Self { shared: Arc::new(shared), info: Arc::new(info) })
    }

    fn node(&self, key: &Key) -> Arc<Node> {
        self.shared.topology.node(key.full())
    }

    fn verb(&self) -> &'static str {
        self.shared.topology.verb()
    }

    /// One request for leases on one server.
    async fn renew_together(&self, node: Arc<Node>, batch: &[&Renew]) -> Vec<Result<Renewal>> {
        let permits: Vec<Vec<u8>> = batch.iter().map(|renew| permit::of(renew.id, renew.mode)).collect();
        let answer = node
            .wire
            .run(&scripts::RENEW, |command| {
                command.arg(batch.len());
                for renew in batch {
                    command.arg(renew.key.full());
                }
                for (renew, permits) in batch.iter().zip(&permits) {
                    let lease = renew.ttl.as_millis().max(1) as u64;
                    command.arg(renew.id.to_string()).arg(lease).arg(permits);
                }
            })
            .await;
        let answers = match answer {
            Ok(Value::Array(answers)) if answers.len() == batch.len() => answers,
            Ok(other) => return batch.iter().map(|_| Err(misfit(Operation::Renew, &other))).collect(),
            Err(fault) => {
                return batch.iter().map(|_| Err(fault.clone().into_error(Operation::Renew))).collect();
            }
        };
        answers.iter().map(answer::renewal).collect()
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
        let rounds = groups.into_iter().map(async |(node, _, places)| {
            let renews: Vec<&Renew> = places.iter().map(|at| &batch[*at]).collect();
            let answers = self.renew_together(node, &renews).await;
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
        let node = self.node(key);
        let answer = node.wire.run(&scripts::UNLOCK, |command| {
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
        let node = self.node(key);
        let answer = node.wire.run(&scripts::LATCH, |command| {
            command.arg(1).arg(key.full()).arg(word).arg(&argument).arg(self.verb());
        });
        let answer = answer.await.map_err(|fault| fault.into_error(Operation::Latch))?;
        answer::count(&answer)?.map_err(|(kind, number)| conflict(Operation::Latch, &kind, number, "a latch"))
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

    async fn close(&self) -> Result<()> {
        for node in self.shared.topology.nodes() {
            node.close();
        }
        Ok(())
    }
}
