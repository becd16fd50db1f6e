//! A script over any backend.
//!
//! Every method is forwarded by hand and the lint makes sure that a new one is, too: a wrapper that inherits a default
//! hides what it wraps.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use leasehold_core::{
    ClaimId, ClientId, Key, Result, Who,
    backend::{
        Backend, BreakOutcome, Broken, Capabilities, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect,
        Finding, LatchStep, LockPage, LockState, Mode, RateAnswer, RateStep, Release, Renew, Renewal,
        Rumours, Sign, StoreInfo,
    },
};

use super::{
    Fault, Script, Verb,
    claim::ScriptedClaim,
    script::{answer_lost, half_way, refused},
};

/// Any backend, with faults on order above its claims. See the [module](super) for what that can show.
#[derive(Clone, Debug)]
pub struct Scripted {
    inner: Arc<dyn Backend>,
    script: Script,
    info: Arc<StoreInfo>,
}

impl Scripted {
    /// This backend, played by this script.
    pub fn new(backend: impl Backend, script: Script) -> Self {
        Self::over(Arc::new(backend), script)
    }

    /// A backend that is shared already, played by this script.
    pub fn over(inner: Arc<dyn Backend>, script: Script) -> Self {
        let info = Arc::new(inner.info().clone());
        Self { inner, script, info }
    }

    /// The same backend, saying that it can do less: what it says it lacks, clients must refuse.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.info = Arc::new(self.inner.info().clone().with_capabilities(capabilities));
        self
    }

    async fn play<T, F>(&self, verb: Verb, request: impl FnOnce(Arc<dyn Backend>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.script.play(verb, request(self.inner.clone())).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Scripted {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(ScriptedClaim::new(self.inner.clone(), spec, self.script.clone()))
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        let faults: Vec<Fault> = batch.iter().map(|_| self.script.draw(Verb::Renew)).collect();
        let wanted = |arrives: fn(&Fault) -> bool| -> Vec<Renew> {
            let pairs = batch.iter().zip(&faults).filter(|(_, fault)| arrives(fault));
            pairs.map(|(renew, _)| renew.clone()).collect()
        };
        for (renew, fault) in batch.iter().zip(&faults) {
            if let Fault::Late(delay) = fault {
                let (inner, renew) = (self.inner.clone(), vec![renew.clone()]);
                self.script.send_later(*delay, async move { Ok(inner.renew(&renew).await) });
            }
        }
        // What arrives at once goes as one batch, as it came.
        let arriving = wanted(|fault| matches!(fault, Fault::Ok | Fault::Slow(_) | Fault::Lost));
        let half_way = half_way(&faults);
        self.script.pass().await;
        tokio::time::sleep(half_way).await;
        let mut answers = self.inner.renew(&arriving).await.into_iter();
        tokio::time::sleep(half_way).await;
        let mut heard = Vec::with_capacity(batch.len());
        for fault in faults {
            heard.push(match fault {
                Fault::Ok | Fault::Slow(_) => answers.next().unwrap_or_else(|| Err(answer_lost())),
                Fault::Lost => {
                    drop(answers.next());
                    Err(answer_lost())
                }
                Fault::Err(kind) => Err(refused(kind)),
                Fault::Late(_) => Err(answer_lost()),
                Fault::Never => std::future::pending().await,
            });
        }
        heard
    }

    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release> {
        let key = key.clone();
        self.play(Verb::Release, |inner| async move { inner.release(&key, id, mode).await }).await
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        let key = key.clone();
        self.play(Verb::Latch, |inner| async move { inner.latch(&key, step).await }).await
    }

    async fn rate(&self, key: &Key, step: RateStep) -> Result<RateAnswer> {
        let key = key.clone();
        self.play(Verb::Rate, |inner| async move { inner.rate(&key, step).await }).await
    }

    async fn announce(&self, who: &Who, signs: &[Sign]) -> Result<()> {
        let (who, signs) = (who.clone(), signs.to_vec());
        self.play(Verb::Announce, |inner| async move { inner.announce(&who, &signs).await }).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let key = key.clone();
        self.play(Verb::Inspect, |inner| async move { inner.inspect(&key).await }).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let (prefix, cursor) = (prefix.to_owned(), cursor.map(str::to_owned));
        self.play(Verb::List, |inner| async move { inner.list(&prefix, cursor.as_deref(), limit).await })
            .await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        let (key, broken) = (key.clone(), broken.clone());
        self.play(Verb::Break, |inner| async move { inner.break_hold(&key, id, &broken).await }).await
    }

    fn rumours(&self, client: ClientId) -> Option<Rumours> {
        self.inner.rumours(client)
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        let name = name.to_owned();
        self.play(Verb::ReadCell, |inner| async move { inner.read_cell(&name).await }).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let (name, value) = (name.to_owned(), value.to_vec());
        self.play(Verb::WriteCell, |inner| async move { inner.write_cell(&name, expect, &value, ttl).await })
            .await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let (prefix, cursor) = (prefix.to_owned(), cursor.map(str::to_owned));
        self.play(Verb::ListCells, |inner| async move {
            inner.list_cells(&prefix, cursor.as_deref(), limit).await
        })
        .await
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        if !self.info.capabilities.clock {
            return Ok(None);
        }
        self.play(Verb::Clock, |inner| async move { inner.wall_clock().await }).await
    }

    async fn diagnose(&self, prefix: &str) -> Result<Vec<Finding>> {
        self.inner.diagnose(prefix).await
    }

    fn diagnose_name(&self, key: &Key) -> Vec<Finding> {
        self.inner.diagnose_name(key)
    }

    #[cfg(unix)]
    fn session(&self) -> Option<std::os::fd::OwnedFd> {
        self.inner.session()
    }

    async fn close(&self) -> Result<()> {
        self.play(Verb::Close, |inner| async move { inner.close().await }).await
    }
}
