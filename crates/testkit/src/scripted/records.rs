//! A script over a record store, below its claims: requests that are held back really arrive later.

use std::{future::Future, time::Duration};

use leasehold_core::{
    ClaimId, Key, Result,
    backend::{
        Bell, Cell, CellPage, CellWrite, Expect, Finding, LockPage, LockState, RateAnswer, RateStep,
        RecordStore, Recorded, StoreInfo,
        record::{Answer, Step},
    },
};
use tokio::time::Instant;

use super::{
    Fault, Script, Verb,
    script::{answer_lost, half_way, refused},
};

/// A record store with faults on order. See the [module](super) for what that can show.
#[derive(Debug)]
pub struct ScriptedRecords<S> {
    inner: Recorded<S>,
    script: Script,
}

impl<S: RecordStore> ScriptedRecords<S> {
    /// The records of this backend, played by this script, as a backend.
    pub fn new(backend: Recorded<S>, script: Script) -> Recorded<Self> {
        Recorded::new(Self { inner: backend, script })
    }

    async fn play<T, F>(&self, verb: Verb, request: impl FnOnce(Recorded<S>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.script.play(verb, request(self.inner.clone())).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: RecordStore> RecordStore for ScriptedRecords<S> {
    type Bell = ScriptedBell<S::Bell>;

    fn info(&self) -> &StoreInfo {
        self.inner.store().info()
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        let key = key.clone();
        self.play(verb(&step), |inner| async move { inner.store().apply(&key, step).await }).await
    }

    fn apply_now(&self, key: &Key, step: Step) -> Result<Result<Answer>, Step> {
        let verb = verb(&step);
        if self.script.plays(verb) {
            return Err(step);
        }
        let answer = self.inner.store().apply_now(key, step)?;
        self.script.draw(verb);
        Ok(answer)
    }

    async fn apply_all(&self, steps: Vec<(Key, Step)>) -> Vec<Result<Answer>> {
        let faults: Vec<Fault> = steps.iter().map(|(_, step)| self.script.draw(verb(step))).collect();
        let mut arriving = Vec::new();
        for ((key, step), fault) in steps.into_iter().zip(&faults) {
            match fault {
                Fault::Ok | Fault::Slow(_) | Fault::Lost => arriving.push((key, step)),
                Fault::Late(delay) => {
                    let inner = self.inner.clone();
                    self.script.send_later(*delay, async move { inner.store().apply(&key, step).await });
                }
                Fault::Err(_) | Fault::Never => {}
            }
        }
        // What arrives at once goes as one batch, as it came.
        let half_way = half_way(&faults);
        self.script.pass().await;
        tokio::time::sleep(half_way).await;
        let mut answers = self.inner.store().apply_all(arriving).await.into_iter();
        tokio::time::sleep(half_way).await;
        let mut heard = Vec::with_capacity(faults.len());
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

    fn bell(&self, key: &Key, id: ClaimId) -> Self::Bell {
        ScriptedBell { inner: self.inner.store().bell(key, id), script: self.script.clone(), rung: None }
    }

    async fn rate(&self, key: &Key, step: RateStep) -> Result<RateAnswer> {
        let key = key.clone();
        self.play(Verb::Rate, |inner| async move { inner.store().rate(&key, step).await }).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let key = key.clone();
        self.play(Verb::Inspect, |inner| async move { inner.store().inspect(&key).await }).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let (prefix, cursor) = (prefix.to_owned(), cursor.map(str::to_owned));
        self.play(
            Verb::List,
            |inner| async move { inner.store().list(&prefix, cursor.as_deref(), limit).await },
        )
        .await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        let name = name.to_owned();
        self.play(Verb::ReadCell, |inner| async move { inner.store().read_cell(&name).await }).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let (name, value) = (name.to_owned(), value.to_vec());
        self.play(Verb::WriteCell, |inner| async move {
            inner.store().write_cell(&name, expect, &value, ttl).await
        })
        .await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let (prefix, cursor) = (prefix.to_owned(), cursor.map(str::to_owned));
        self.play(Verb::ListCells, |inner| async move {
            inner.store().list_cells(&prefix, cursor.as_deref(), limit).await
        })
        .await
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        self.play(Verb::Clock, |inner| async move { inner.store().wall_clock().await }).await
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        self.inner.store().diagnose().await
    }

    #[cfg(unix)]
    fn session(&self) -> Option<std::os::fd::OwnedFd> {
        self.inner.store().session()
    }

    async fn close(&self) -> Result<()> {
        self.play(Verb::Close, |inner| async move { inner.store().close().await }).await
    }
}

/// A bell that can be hard of hearing.
#[derive(Debug)]
pub struct ScriptedBell<B> {
    inner: B,
    script: Script,
    /// A ring that was heard late: it is not forgotten if the wait is dropped meanwhile.
    rung: Option<Instant>,
}

impl<B: Bell> Bell for ScriptedBell<B> {
    async fn rung(&mut self) {
        let fault = self.script.draw(Verb::Changed);
        match fault {
            // A record store's bell cannot fail; the nearest thing is a ring for nothing.
            Fault::Err(_) => return,
            Fault::Never => std::future::pending().await,
            _ => {}
        }
        if self.rung.is_none() {
            self.inner.rung().await;
            if fault == Fault::Lost {
                self.inner.rung().await;
            }
            self.rung = Some(Instant::now());
        }
        if let (Fault::Slow(delay) | Fault::Late(delay), Some(rung)) = (fault, self.rung) {
            tokio::time::sleep_until(rung + delay).await;
        }
        self.rung = None;
    }
}

fn verb(step: &Step) -> Verb {
    match step {
        Step::Attempt { .. } => Verb::Attempt,
        Step::Renew(_) => Verb::Renew,
        Step::Recount { .. } => Verb::Recount,
        Step::Raise { .. } => Verb::Raise,
        Step::Release { .. } => Verb::Release,
        Step::Break { .. } => Verb::Break,
        Step::Latch(_) => Verb::Latch,
    }
}
