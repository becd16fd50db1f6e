//! A store in memory that cannot be reached by renewals for a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use leasehold_core::{
    ClaimId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Backend, BreakOutcome, Broken, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect, LatchStep,
        LockPage, LockState, Mode, Release, Renew, Renewal, StoreInfo,
    },
};

/// Clones are the same store.
#[derive(Clone, Debug)]
pub(crate) struct Deaf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Box<dyn Backend>,
    is_deaf: AtomicBool,
}

impl Deaf {
    pub(crate) fn new(store: impl Backend) -> Self {
        Self(Arc::new(Inner { store: Box::new(store), is_deaf: AtomicBool::new(false) }))
    }

    /// From now on no renewal is heard, or every one is again.
    pub(crate) fn is_deaf(&self, is_deaf: bool) {
        self.0.is_deaf.store(is_deaf, SeqCst);
    }
}

#[async_trait]
impl Backend for Deaf {
    fn info(&self) -> &StoreInfo {
        self.0.store.info()
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        self.0.store.claim(spec)
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
