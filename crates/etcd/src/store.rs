//! The store: etcd as a backend.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Backend, BreakOutcome, Broken, Capabilities, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect,
        Finding, Guarantee, LatchStep, Level, LockPage, LockState, Mode, Release, Renew, Renewal, Rumours,
        StoreInfo,
    },
};

use crate::{
    admin,
    bell::Belfry,
    cells,
    claim::{self, EtcdClaim, POLL},
    config::EtcdConfig,
    doctor,
    error::Fault,
    latch,
    names::Folder,
    proto::{Empty, StatusResponse},
    renew, rumours,
    session::{self, Session},
    txn,
    wire::{Wire, path},
};

/// etcd as a store of locks. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Etcd {
    shared: Arc<Shared>,
    info: Arc<StoreInfo>,
}

/// What claims need of the store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) wire: Arc<Wire>,
    pub(crate) session: Session,
    pub(crate) belfry: Arc<Belfry>,
}

/// What would have to happen for two clients to be granted one lock.
const UNLESS: &str = "a majority of the members loses what it wrote, a clock runs more than one percent off, or an etcd \
                      without the fix of its issue 15247 stalls for longer than a lease; never for data in etcd that is \
                      written under the condition that `compare` gives";

impl Etcd {
    /// Connects to the servers of this configuration.
    ///
    /// # Errors
    /// `Unavailable` if none can be reached, `Denied` if they do not accept the credentials, `Config` if the
    /// configuration makes no sense, `Unsupported` if the server is older than 3.4.
    ///
    /// # Panics
    /// Outside of a tokio runtime: the connection needs one to live on.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn open(config: EtcdConfig) -> Result<Self> {
        let refused = |fault: Fault| match fault {
            // Nothing was asked for yet that could have taken effect.
            Fault::Unknown(text) => Fault::NotSent(text).into_error(Operation::Connect),
            fault => fault.into_error(Operation::Connect),
        };
        let wire = Arc::new(Wire::new(&config)?);
        wire.authenticate().await.map_err(refused)?;
        let status = first_status(&wire).await.map_err(refused)?;
        refuse_old(&status.version)?;
        let mut info = StoreInfo::new(config.scheme(), config.place(), Guarantee::new(Level::S3, UNLESS))
            .with_capabilities(capabilities());
        if let Some(header) = status.header {
            info = info.with_identity(format!("etcd cluster {:x}", header.cluster_id));
        }
        let belfry = Arc::new(Belfry::new(wire.clone()));
        let shared = Arc::new(Shared { wire, session: Session::default(), belfry });
        Ok(Self { shared, info: Arc::new(info) })
    }
}

/// One that is down is left for the next.
async fn first_status(wire: &Wire) -> Result<StatusResponse, Fault> {
    let mut last = Fault::NotSent("no server is named".to_owned());
    for at in 0..wire.len() {
        match wire.ask(at, path::STATUS, Empty {}).await {
            Ok(status) => return Ok(status),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

fn capabilities() -> Capabilities {
    let mut can = Capabilities::default();
    // A fence is a revision, not a counter of which a block could be reserved.
    can.cohort = false;
    // What a server gives at least, unless its election timeout is longer than usual.
    can.min_ttl = Duration::from_secs(2);
    can.poll = POLL;
    can
}

fn refuse_old(version: &str) -> Result<()> {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if (major, minor) >= (3, 4) {
        return Ok(());
    }
    let message = format!("this etcd is version {version}; from 3.4 on it can do what locks need");
    Err(Error::new(ErrorKind::Unsupported, Operation::Connect, message))
}

#[async_trait]
impl Backend for Etcd {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        Box::new(EtcdClaim::new(self.shared.clone(), spec))
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        renew::renew(&self.shared, batch).await
    }

    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release> {
        let refused = |fault: Fault| fault.into_error(Operation::Release);
        let (wire, folder) = (&self.shared.wire, Folder::of(key));
        // What its lease was is only known before the key is gone.
        let look = vec![txn::get(folder.held(mode, id))];
        let seen = wire.txn(crate::proto::TxnRequest { success: look, ..Default::default() }).await;
        let seen = seen.map_err(refused)?;
        let (deleted, broken) = claim::remove(&self.shared, &folder, mode, id).await.map_err(refused)?;
        self.shared.session.forget(id);
        if let Some(held) = seen.first(0).filter(|_| deleted) {
            session::revoke(wire, held.lease).await.map_err(refused)?;
        }
        Ok(if deleted { Release::Released } else { Release::Gone(broken) })
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        latch::step(&self.shared, key, step).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        admin::inspect(&self.shared, key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        admin::list(&self.shared, prefix, cursor, limit).await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        admin::break_hold(&self.shared, key, id, broken).await
    }

    fn rumours(&self, client: ClientId) -> Option<Rumours> {
        Some(rumours::listen(self.shared.clone(), client))
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        cells::read(&self.shared, name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        cells::write(&self.shared, name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        cells::list(&self.shared, prefix, cursor, limit).await
    }

    async fn diagnose(&self, prefix: &str) -> Result<Vec<Finding>> {
        doctor::examine(&self.shared, prefix).await
    }

    async fn close(&self) -> Result<()> {
        let spare = self.shared.session.take_spare();
        // What cannot be given back runs out.
        drop(join_all(spare.iter().map(|lease| session::revoke(&self.shared.wire, lease.id))).await);
        self.shared.wire.close();
        self.shared.belfry.close();
        Ok(())
    }
}
