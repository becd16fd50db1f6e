//! The store: ZooKeeper as a backend.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use leasehold_core::{
    ClaimId, Error, Key, Operation, Result,
    backend::{
        Backend, BreakOutcome, Broken, Capabilities, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect,
        Finding, Guarantee, LatchStep, Level, LockPage, LockState, Mode, Release, Renew, Renewal, StoreInfo,
    },
    time::{Clock, Instant},
};

use crate::{
    admin,
    book::Book,
    cells,
    claim::ZooKeeperClaim,
    config::ZooKeeperConfig,
    doctor,
    error::Fault,
    latch, names,
    session::{Link, Session},
};

/// Watches are sure: who waits looks again by itself only now and then.
pub(crate) const POLL: Duration = Duration::from_secs(10);

/// How long to wait after a removal that failed.
const AGAIN: Duration = Duration::from_millis(100);

const ENSEMBLE: Guarantee = Guarantee::new(
    Level::S3,
    "never, as long as holders heed the end of their leases; a majority of the ensemble must keep its data",
);

const ALONE: Guarantee = Guarantee::new(
    Level::S1,
    "if the one server loses its data, locks and fences begin anew; run three servers or five",
);

/// ZooKeeper as a store of locks. Clones are the same store.
#[derive(Clone, Debug)]
pub struct ZooKeeper {
    shared: Arc<Shared>,
    info: Arc<StoreInfo>,
    config: Arc<ZooKeeperConfig>,
}

/// What claims need of the store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) book: Arc<Book>,
    root: String,
}

impl Shared {
    /// The container of a name.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{}", self.root, names::encode(name))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Whoever waits for leases to run out is told that there are none any more.
        self.book.wake();
    }
}

impl ZooKeeper {
    /// Connects to the ensemble of this configuration.
    ///
    /// # Errors
    /// `Unavailable` if no server can be reached or none has a quorum, `Denied` if we may not write below the root,
    /// `Config` if the configuration makes no sense.
    ///
    /// # Panics
    /// Outside of a tokio runtime: the session needs one to live on.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn open(config: ZooKeeperConfig) -> Result<Self> {
        let link = Link::open(config.clone()).await?;
        let session = link.session().await.map_err(|fault| fault.into_error(Operation::Connect))?;
        let guarantee = if doctor::members(&session).await.len() > 1 { ENSEMBLE } else { ALONE };
        let mut can = Capabilities::default();
        (can.detached, can.cohort, can.poll, can.clock) = (false, false, POLL, true);
        let info = StoreInfo::new("zookeeper", config.place(), guarantee).with_capabilities(can);
        let shared = Arc::new(Shared { link, book: Arc::default(), root: config.root.clone() });
        tokio::runtime::Handle::current().spawn(end_leases(Arc::downgrade(&shared), shared.book.clone()));
        Ok(Self { shared, info: Arc::new(info), config: Arc::new(config) })
    }

    async fn session(&self, operation: Operation) -> Result<Arc<Session>> {
        self.shared.link.session().await.map_err(|fault| fault.into_error(operation))
    }

    async fn renew_all(&self, batch: &[Renew]) -> Result<Vec<Result<Renewal, Fault>>, Fault> {
        let session = self.shared.link.session().await?;
        let sent = Clock::boot().now();
        // The proof goes first: what is read after it is no older than it.
        let proof = session.prove();
        let each = batch.iter().map(|renew| self.renew_one(&session, renew, sent));
        let (proof, each) = join(proof, join_all(each)).await;
        proof?;
        Ok(each)
    }

    async fn renew_one(&self, session: &Session, renew: &Renew, sent: Instant) -> Result<Renewal, Fault> {
        let parent = self.shared.path(renew.key.full());
        if let Some(own) = self.shared.book.get(renew.id, session.id()).filter(|own| own.until.is_some()) {
            let found = session.answered(session.client.check_stat(&own.path())).await?;
            let granted = renew.ttl.min(session.lease());
            if found.is_some() && self.shared.book.hold(renew.id, sent.after(granted)) {
                return Ok(Renewal::Renewed { granted });
            }
            self.shared.book.remove(renew.id);
        }
        Ok(Renewal::Lost(admin::mark(session, &parent, renew.id).await?))
    }
}

/// Removes what has run out, until the store is gone.
async fn end_leases(shared: Weak<Shared>, book: Arc<Book>) {
    loop {
        book.pause().await;
        let Some(shared) = shared.upgrade() else { return };
        for (id, own) in book.take_over(Clock::boot().now()) {
            match shared.link.session().await {
                Ok(session) if session.id() == own.session => {
                    if let Err(fault) = session.delete(&own.path()).await {
                        tracing::debug!(?fault, "a lease that ran out is not removed yet");
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                }
                // The session it belonged to is over, and so is it.
                Ok(_) => {}
                Err(_) => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            }
            book.forget(id, &own.node);
        }
        remove_tries(&shared).await;
    }
}

/// Removes what failed tries have left.
async fn remove_tries(shared: &Shared) {
    let mut sweeps = shared.book.sweeps().await;
    if sweeps.is_empty() {
        return;
    }
    let Ok(session) = shared.link.session().await else { return };
    let mut done = Vec::new();
    for (id, parent) in sweeps.iter() {
        match admin::remove_tries(&session, parent, *id).await {
            Ok(()) => done.push(*id),
            Err(fault) => tracing::debug!(?fault, "a failed try is not removed yet"),
        }
    }
    sweeps.retain(|id, _| !done.contains(id));
}

#[async_trait]
impl Backend for ZooKeeper {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(ZooKeeperClaim::new(self.shared.clone(), spec))
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        if batch.is_empty() {
            return Vec::new();
        }
        match self.renew_all(batch).await {
            Ok(each) => {
                each.into_iter().map(|one| one.map_err(|fault| fault.into_error(Operation::Renew))).collect()
            }
            Err(fault) => {
                let error = fault.into_error(Operation::Renew);
                let again = |_: &Renew| Err(Error::new(error.kind(), Operation::Renew, error.to_string()));
                batch.iter().map(again).collect()
            }
        }
    }

    async fn release(&self, key: &Key, id: ClaimId, _mode: Mode) -> Result<Release> {
        let session = self.session(Operation::Release).await?;
        let released = admin::release(&session, &self.shared.path(key.full()), id).await;
        self.shared.book.remove(id);
        released.map_err(|fault| fault.into_error(Operation::Release))
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        let session = self.session(Operation::Latch).await?;
        let count = latch::step(&session, &self.shared.path(key.full()), step).await;
        count.map_err(|fault| fault.into_error(Operation::Latch))
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let session = self.session(Operation::Inspect).await?;
        let path = self.shared.path(key.full());
        let state = admin::inspect(&session, &self.shared.book, &path, key.full()).await;
        state.map_err(|fault| fault.into_error(Operation::Inspect))
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let session = self.session(Operation::Inspect).await?;
        let page = (prefix, cursor, limit);
        let listed = admin::list(&session, &self.shared.book, &self.shared.root, page).await;
        listed.map_err(|fault| fault.into_error(Operation::Inspect))
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        let session = self.session(Operation::Break).await?;
        let path = self.shared.path(key.full());
        let outcome = admin::break_hold(&session, &self.shared.book, &path, id, broken).await;
        outcome.map_err(|fault| fault.into_error(Operation::Break))
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        let session = self.session(Operation::Cell).await?;
        let cell = cells::read(&session, &self.shared.root, name).await;
        cell.map_err(|fault| fault.into_error(Operation::Cell))
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let session = self.session(Operation::Cell).await?;
        let written = cells::write(&session, &self.shared.root, (name, expect), value, ttl).await;
        written.map_err(|fault| fault.into_error(Operation::Cell))
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let session = self.session(Operation::Cell).await?;
        let page = cells::list(&session, &self.shared.root, (prefix, cursor, limit)).await;
        page.map_err(|fault| fault.into_error(Operation::Cell))
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        let session = self.session(Operation::Inspect).await?;
        let millis = session.prove().await.map_err(|fault| fault.into_error(Operation::Inspect))?;
        Ok(Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0))))
    }

    async fn diagnose(&self, _prefix: &str) -> Result<Vec<Finding>> {
        let session = self.session(Operation::Inspect).await?;
        Ok(doctor::examine(&session, &self.config).await)
    }

    async fn close(&self) -> Result<()> {
        self.shared.link.close().await;
        Ok(())
    }
}
