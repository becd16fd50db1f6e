//! A store in memory that cannot be reached by renewals for a while, or is slow to answer a release.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use leasehold_core::{
    ClaimId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Attempt, Backend, BreakOutcome, Broken, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect, Holds,
        LatchStep, LockPage, LockState, Mode, Release, Renew, Renewal, StoreInfo,
    },
};

use super::seconds;

/// Clones are the same store.
#[derive(Clone, Debug)]
pub(crate) struct Deaf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Box<dyn Backend>,
    is_deaf: AtomicBool,
    /// How many seconds a release takes.
    slow: AtomicU64,
}

/// A claim that is slow to be released.
#[derive(Debug)]
struct Slow {
    claim: Box<dyn Claim>,
    store: Deaf,
}

impl Deaf {
    pub(crate) fn new(store: impl Backend) -> Self {
        Self(Arc::new(Inner {
            store: Box::new(store),
            is_deaf: AtomicBool::new(false),
            slow: AtomicU64::new(0),
        }))
    }

    /// From now on no renewal is heard, or every one is again.
    pub(crate) fn is_deaf(&self, is_deaf: bool) {
        self.0.is_deaf.store(is_deaf, SeqCst);
    }

    /// From now on a release is answered after so many seconds.
    pub(crate) fn is_slow(&self, seconds: u64) {
        self.0.slow.store(seconds, SeqCst);
    }
}

#[async_trait]
impl Claim for Slow {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.claim.attempt().await
    }

    async fn changed(&mut self) -> Result<()> {
        self.claim.changed().await
    }

    async fn recount(&mut self, holds: Holds) -> Result<Renewal> {
        self.claim.recount(holds).await
    }

    async fn release(&mut self) -> Result<Release> {
        let answer = self.claim.release().await;
        seconds(self.store.0.slow.load(SeqCst)).await;
        answer
    }
}

#[async_trait]
impl Backend for Deaf {
    fn info(&self) -> &StoreInfo {
        self.0.store.info()
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(Slow { claim: self.0.store.claim(spec), store: self.clone() })
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        if self.0.is_deaf.load(SeqCst) {
            let error =
                || Error::new(ErrorKind::Unavailable, Operation::Renew, "the store cannot be reached");
            return batch.iter().map(|_| Err(error())).collect();
        }
        self.0.store.renew(batch).await
    }

    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release> {
        self.0.store.release(key, id, mode).await
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        self.0.store.latch(key, step).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        self.0.store.inspect(key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.0.store.list(prefix, cursor, limit).await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        self.0.store.break_hold(key, id, broken).await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        self.0.store.read_cell(name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        self.0.store.write_cell(name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        self.0.store.list_cells(prefix, cursor, limit).await
    }

    async fn close(&self) -> Result<()> {
        self.0.store.close().await
    }
}
