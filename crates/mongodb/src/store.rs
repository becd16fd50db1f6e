//! The store: steps on records, each in one request where nobody is in the way.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Capabilities, Cell, CellPage, CellWrite, Expect, Finding, Guarantee, Level, LockPage, LockState,
        Mode, RecordStore, Recorded, StoreInfo,
        record::{Answer, Applied, Moment, Step, Surroundings},
    },
};
use mongodb::bson::{Document, doc};

use crate::{
    admin,
    bell::{Bells, MongodbBell},
    cells,
    config::MongodbConfig,
    connect::{self, Kind},
    desk::{Desk, Missing},
    doctor,
    documents::{self, Seen},
    error::foreign,
};

/// How often a step is tried while others write first. Each time one of them got on, so it ends; this only bounds it.
const TRIES: usize = 1000;

/// How many requests of one batch are on their way at a time.
const TOGETHER: usize = 16;

/// How many documents are remembered as we wrote them.
const RECENT: usize = 4096;

/// How many waiters outside the line a record names: it is read and written whole.
const CROWD: usize = 64;

const REPLICATED: Guarantee = Guarantee::new(
    Level::S3,
    "the clocks of its members differ by about a lease when the primary changes; fences grow even then",
);

const SINGLE: Guarantee = Guarantee::new(
    Level::S1,
    "the server's data is lost or restored from a backup, or its clock is set forward",
);

/// Locks in a MongoDB.
pub struct Mongodb {
    info: StoreInfo,
    desk: Desk,
    /// What waiters of ours are known by, and how writes of ours are told from all others.
    session: ClientId,
    writes: AtomicU64,
    bells: Bells,
    /// Documents as we last knew them. Several requests may be answered out of order, so nothing but a write goes by it.
    recent: Mutex<HashMap<Arc<str>, Seen>>,
}

impl fmt::Debug for Mongodb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.info.address;
        f.debug_struct("Mongodb")
            .field("address", address)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Mongodb {
    /// Connects to the servers of this configuration and makes the collections if they are missing.
    ///
    /// # Errors
    /// `Unavailable` if no primary can be reached, `Denied` if it does not accept the credentials or does not let us
    /// write, `Config` if the driver cannot read the URL.
    ///
    /// # Panics
    /// Outside of a tokio runtime: the driver needs one to live on.
    ///
    /// # Cancel safety
    /// Dropped half-way it may leave empty collections behind, which do no harm.
    pub async fn open(config: MongodbConfig) -> Result<Recorded<Self>> {
        let found = connect::open(config).await?;
        let mut can = Capabilities::default();
        can.clock = true;
        let guarantee = match found.kind {
            Kind::Replicated => REPLICATED,
            Kind::Single => SINGLE,
        };
        can.poll = match found.kind {
            Kind::Replicated => Duration::from_secs(2),
            Kind::Single => Duration::from_millis(100),
        };
        if found.kind == Kind::Replicated {
            // What a majority has to confirm takes longer than the shortest of leases.
            can.min_ttl = Duration::from_secs(1);
        }
        let info = StoreInfo::new("mongodb", found.place, guarantee).with_capabilities(can);
        let session = ClientId::random();
        let bells = Bells::new(found.kind, found.desk.locks.clone(), session);
        let (writes, recent) = (AtomicU64::new(0), Mutex::default());
        Ok(Recorded::new(Self { info, desk: found.desk, session, writes, bells, recent }))
    }

    async fn take(&self, key: &Key, step: &Step) -> Result<Answer> {
        let remembered = self.remembered(key, step);
        let mut is_sure = remembered.is_none();
        let mut seen = match remembered {
            Some(remembered) => remembered,
            None => self.first_look(key, step).await?,
        };
        for _ in 0..TRIES {
            let version = self.version();
            let mut record = seen.record.clone();
            let Applied { answer, changed, wake } = record.apply(step, &self.around(seen.now));
            if !changed && is_sure {
                return answer;
            }
            if !changed {
                // What we remember is old, and only a write that goes by it would have found that out.
                (seen, is_sure) = (self.first_look(key, step).await?, true);
                continue;
            }
            let pipeline = documents::swap(key.full(), seen.version.as_deref(), (&record, &wake), &version)?;
            let missing = if seen.version.is_none() { Missing::Make } else { Missing::Leave };
            let found = self.desk.change(&self.desk.locks, key.full(), pipeline, missing).await?;
            let is_ours = found
                .as_ref()
                .is_some_and(|found| found.get_str("version").is_ok_and(|found| found == version));
            if is_ours {
                self.remember(key, Seen { version: Some(version), record, now: seen.now });
                self.bells.ring(&wake, self.session);
                return answer;
            }
            (seen, is_sure) = (self.sighted(key, found).await?, true);
        }
        let message = "others change this name all the time; try again later";
        Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, message))
    }

    /// What we last knew of a name, for a step that needs no clock: what is given back soon is given back by one request.
    fn remembered(&self, key: &Key, step: &Step) -> Option<Seen> {
        let is_timeless = matches!(step, Step::Release { barrier: false, .. });
        if is_timeless { self.recent().remove(key.full()) } else { None }
    }

    /// What a step starts from. For an attempt on a free name this is already all of it.
    async fn first_look(&self, key: &Key, step: &Step) -> Result<Seen> {
        let (pipeline, missing) = match step {
            Step::Attempt { spec, .. } if spec.mode != Mode::Open => {
                (documents::open(spec, &self.around(Moment(0)), &self.version())?, Missing::Make)
            }
            _ => (documents::look(), Missing::Leave),
        };
        let found = self.desk.change(&self.desk.locks, key.full(), pipeline, missing).await?;
        let seen = self.sighted(key, found).await?;
        self.remember(key, seen.clone());
        Ok(seen)
    }

    /// What a request found. One that the driver had to repeat may be answered by what the server remembers of it, and
    /// that is without the time.
    async fn sighted(&self, key: &Key, mut found: Option<Document>) -> Result<Seen> {
        if found.as_ref().is_some_and(|found| !found.contains_key("now")) {
            found = self.desk.change(&self.desk.locks, key.full(), documents::look(), Missing::Leave).await?;
        }
        match found {
            Some(found) => Seen::read(&found),
            None => Ok(Seen::nothing(self.time().await?)),
        }
    }

    /// The time of the primary, for names without a document.
    async fn time(&self) -> Result<Moment> {
        let hello = self.desk.ask(doc! { "hello": 1 }).await?;
        hello.get_datetime("localTime").map(|time| documents::moment(*time)).map_err(|_| foreign("time"))
    }

    /// A version that no other write has.
    fn version(&self) -> String {
        format!("{}:{}", self.session, self.writes.fetch_add(1, Ordering::Relaxed))
    }

    /// Nothing but its lease ends an entry here: MongoDB does not tell who is gone.
    fn around(&self, now: Moment) -> Surroundings<'static> {
        Surroundings { now, session: Some(self.session), crowd: CROWD, alive: &|_| true }
    }

    fn remember(&self, key: &Key, seen: Seen) {
        let mut recent = self.recent();
        if recent.len() >= RECENT {
            recent.clear();
        }
        recent.insert(key.shared(), seen);
    }

    fn recent(&self) -> MutexGuard<'_, HashMap<Arc<str>, Seen>> {
        // Whatever is in there is checked by the write that goes by it.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordStore for Mongodb {
    type Bell = MongodbBell;

    fn info(&self) -> &StoreInfo {
        &self.info
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        let answer = self.take(key, &step).await;
        answer.map_err(|error| error.during(step.operation()).about(key.name()))
    }

    async fn apply_all(&self, steps: Vec<(Key, Step)>) -> Vec<Result<Answer>> {
        let each = steps.into_iter().map(async |(key, step)| self.apply(&key, step).await);
        stream::iter(each).buffered(TOGETHER).collect().await
    }

    fn bell(&self, _key: &Key, id: ClaimId) -> MongodbBell {
        self.bells.arm(id)
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let state = admin::inspect(&self.desk, key.full()).await;
        state.map_err(|error| error.about(key.name()))
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        admin::list(&self.desk, prefix, cursor, limit).await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        cells::read(&self.desk, name).await.map_err(|error| error.during(Operation::Cell))
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let written = cells::write(&self.desk, &self.version(), (name, expect), value, ttl).await;
        written.map_err(|error| error.during(Operation::Cell))
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let page = cells::list(&self.desk, prefix, cursor, limit).await;
        page.map_err(|error| error.during(Operation::Cell))
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        Ok(Some(Duration::from_micros(self.time().await?.0)))
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        doctor::examine(&self.desk, self.bells.hears()).await
    }

    async fn close(&self) -> Result<()> {
        self.bells.close();
        self.desk.client.clone().shutdown().immediate(true).await;
        Ok(())
    }
}
