//! The store: steps on records, each a read and, if it changed anything, a write that goes by it.

use std::time::Duration;

use leasehold_core::{
    ClaimId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Capabilities, Cell, CellPage, CellWrite, Expect, Finding, Guarantee, Level, LockPage, LockState,
        Polling, RecordStore, Recorded, StoreInfo,
        record::{Answer, Record, Step, Surroundings},
    },
};

use crate::{
    admin, cells,
    config::MemcachedConfig,
    doctor,
    error::foreign,
    items::{self, Write},
    names::Sort,
    pool::Pool,
    tick::{self, Tick},
};

/// How often a step is tried while others write first. Each time one of them got on, so it ends; this only bounds it.
const TRIES: usize = 1000;

/// How many waiters outside the line a record names: it is read and written whole.
const CROWD: usize = 64;

const GUARANTEE: Guarantee = Guarantee::new(
    Level::S0,
    "memcached evicts the lock for want of room, is restarted, flushed or paused: it is a cache and keeps no promise",
);

/// Locks in a memcached.
#[derive(Debug)]
pub struct Memcached {
    info: StoreInfo,
    pool: Pool,
}

impl Memcached {
    /// Connects to the server of this configuration.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be reached, `Denied` if it does not accept the credentials, `Config` if it was
    /// started with `-C`, without compare-and-set, `Internal` if it is no memcached or one without meta commands.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn open(config: MemcachedConfig) -> Result<Recorded<Self>> {
        let mut can = Capabilities::default();
        can.clock = true;
        can.min_ttl = Duration::from_secs(1);
        can.max_ttl = Duration::from_secs(29 * 24 * 3600);
        can.poll = Duration::from_millis(100);
        let info = StoreInfo::new("memcached", config.place(), GUARANTEE).with_capabilities(can);
        let store = Self { info, pool: Pool::new(config) };
        let hello = items::now(&store.pool).await;
        hello.map_err(|error| error.during(Operation::Connect).about(&store.info.address))?;
        Ok(Recorded::new(store))
    }

    async fn take(&self, key: &Key, step: &Step) -> Result<Answer> {
        for _ in 0..TRIES {
            let seen = items::look(&self.pool, Sort::Record, key.full()).await?;
            let now = seen.now;
            let mut record = match &seen.content {
                Some(content) => decoded(key.full(), content)?,
                None => Record::new(now.floor()),
            };
            let applied = record.apply(step, &around(now));
            if !applied.changed {
                seen.leave(&self.pool);
                return applied.answer;
            }
            let (text, life) = (record.encode(), now.life_of(&record));
            if seen.write(&self.pool, key.full(), text.as_bytes(), life).await? == Write::Written {
                return applied.answer;
            }
        }
        let message = "others change this name all the time; try again later";
        Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, message))
    }
}

/// Nothing but its lease ends an entry here: memcached has no sessions.
pub(crate) fn around(now: Tick) -> Surroundings<'static> {
    Surroundings { now: now.moment(), session: None, crowd: CROWD, alive: &|_| true }
}

/// The record in an item.
pub(crate) fn decoded(name: &str, content: &[u8]) -> Result<Record> {
    let text = std::str::from_utf8(content).map_err(|_| foreign(&Sort::Record.key(name)))?;
    Record::decode(text)
}

impl RecordStore for Memcached {
    type Bell = Polling;

    fn info(&self) -> &StoreInfo {
        &self.info
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        let operation = step.operation();
        let answer = self.take(key, &tick::prolonged(step)).await;
        answer.map(tick::shortened).map_err(|error| error.during(operation).about(key.name()))
    }

    fn bell(&self, _key: &Key, _id: ClaimId) -> Polling {
        Polling::new()
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let state = admin::inspect(&self.pool, key.full()).await;
        state.map_err(|error| error.about(key.name()))
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        admin::list(&self.pool, prefix, cursor, limit).await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        cells::read(&self.pool, name).await.map_err(|error| error.during(Operation::Cell))
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        let written = cells::write(&self.pool, name, expect, value, ttl).await;
        written.map_err(|error| error.during(Operation::Cell))
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let page = cells::list(&self.pool, prefix, cursor, limit).await;
        page.map_err(|error| error.during(Operation::Cell))
    }

    /// In whole seconds, and up to two of them behind.
    async fn wall_clock(&self) -> Result<Option<Duration>> {
        Ok(Some(Duration::from_micros(items::now(&self.pool).await?.moment().0)))
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        doctor::examine(&self.pool).await
    }

    async fn close(&self) -> Result<()> {
        self.pool.close();
        Ok(())
    }
}
