//! MySQL and MariaDB as a database of records.

use std::{sync::atomic::AtomicU64, time::Duration};

use leasehold_core::{
    ClientId, Error, ErrorKind, Operation, Result,
    backend::{
        Capabilities, Cell, CellWrite, Expect, Finding, Guarantee, Level, Recorded, StoreInfo, record::Moment,
    },
};
use mysql_async::Value;

use super::{
    MySql, MySqlConfig, cells,
    connection::{Answered, Connection},
    doctor,
    session::{self, NamedLock},
    setup, statements,
};
use crate::server::{
    After, Begin, Database, First, Found, Row, Swapped, Tried, bell::Bells, pool::Pool, session::Session,
};

/// How often waiters look for themselves.
const POLL: Duration = Duration::from_millis(50);

/// The longest that a session lasts without a sign of life: later, the system may have given up its connection by itself.
const LONGEST_SESSION: Duration = Duration::from_secs(600);

/// The tables of one MySQL or MariaDB database.
#[derive(Debug)]
pub struct MySqlDatabase {
    pub(super) config: MySqlConfig,
    pool: Pool<Connection>,
    pub(super) cell_writes: AtomicU64,
    session: Option<Session>,
}

const IN_LEASES: Guarantee = Guarantee::new(
    Level::S3,
    "the server's clock jumps, or a failover loses the last commits; see in_transaction for S4",
);

const IN_SESSIONS: Guarantee = Guarantee::new(
    Level::S3,
    "the server restarts, another takes its place, or an operator ends a session, until its holder hears of it, the \
     server's clock jumps, or a failover loses the last commits; see in_transaction for S4",
);

impl MySql {
    /// Opens a store, creating its tables if they are missing and we may.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `Denied` if it refuses user, password or rights (with the SQL
    /// that somebody else may run for us), `Config` for a database that does not exist.
    ///
    /// # Cancel safety
    /// Dropped half-way it may leave empty tables behind, which does no harm.
    pub async fn open(config: MySqlConfig) -> Result<Recorded<Self>> {
        let place = format!("mysql://{}", config.place());
        let mut database = MySqlDatabase {
            pool: Pool::new(config.common.connections, config.common.command_timeout),
            config,
            cell_writes: AtomicU64::new(0),
            session: None,
        };
        let connecting = |error: Error| error.during(Operation::Connect).about(&place);
        let identity = setup::prepare(&database).await.map_err(connecting)?;
        let common = &database.config.common;
        if let Some(patience) = common.session {
            let (options, patience) = (database.config.outlasting_options(), patience.min(LONGEST_SESSION));
            let lock = NamedLock { options, connect_timeout: common.connect_timeout, patience };
            database.session = Some(Session::begin(lock, patience).await.map_err(connecting)?);
        }
        let guarantee = if database.session.is_some() { IN_SESSIONS } else { IN_LEASES };
        let mut can = Capabilities::default();
        can.poll = POLL;
        can.clock = true;
        let info = StoreInfo::new("mysql", place, guarantee).with_identity(identity).with_capabilities(can);
        Ok(Self::new(info, database, Bells::default()))
    }
}

impl MySqlDatabase {
    /// Sends statements in one go, each a transaction of its own.
    pub(super) async fn ask(&self, statements: &str) -> Tried<Vec<Answered>> {
        let work = async |connection: &mut Connection| connection.ask(statements).await;
        self.pool.with(self.connect(), work).await
    }

    /// The same for one statement whose last column says whether the server is a replica: then nothing it says counts, and
    /// we connect anew.
    pub(super) async fn ask_primary(&self, statement: &str) -> Tried<Vec<Answered>> {
        let work = async |connection: &mut Connection| {
            let answers = connection.ask(statement).await?;
            let row = answers.first().and_then(|answer| answer.rows.first());
            if row.map(|row| value::<bool>(row, row.len() - 1)).transpose()?.unwrap_or(true) {
                connection.close();
                return Err(session::replica().into());
            }
            Ok(answers)
        };
        self.pool.with(self.connect(), work).await
    }

    async fn connect(&self) -> Tried<Connection> {
        Connection::connect(self.config.options(), self.config.common.connect_timeout).await
    }
}

impl Database for MySqlDatabase {
    async fn look(&self, name: &str) -> Tried<Found> {
        Ok(found(&self.ask(&statements::look(name)).await?)?)
    }

    async fn claim(&self, name: &str, first: &First) -> Tried<Found> {
        Ok(found(&self.ask(&statements::claim(name, first)).await?)?)
    }

    async fn swap(&self, name: &str, before: &Found, after: &After) -> Tried<Swapped> {
        let asked = match before.version() {
            Some(version) => statements::swap(name, version, after),
            None => statements::make(name, before.floor, after),
        };
        // Nothing that was there before is changed by making a row, so it counts as none; all else changes the version.
        if affected(&self.ask(&asked).await?) == 1 {
            return Ok(Swapped::Done(before.version().unwrap_or(before.floor) + 1));
        }
        Ok(Swapped::Other(self.look(name).await?))
    }

    async fn page(&self, from: Begin<'_>, limit: usize) -> Tried<(Moment, Vec<(String, Row)>)> {
        let answers = self.ask(&statements::page(from.comparison(), from.name(), limit)).await?;
        let (mut now, mut page) = (Moment(0), Vec::new());
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            now = Moment(value(row, 1)?);
            if let Some(kept) = kept(row, 2)? {
                page.push((value(row, 0)?, kept));
            }
        }
        Ok((now, page))
    }

    async fn sweep(&self) -> Tried<u64> {
        let cells = cells::bury(self).await?;
        let many = self.ask(&statements::many_due()).await?;
        let row = many.first().and_then(|answer| answer.rows.first());
        if !row.map(|row| value::<bool>(row, 0)).transpose()?.unwrap_or_default() {
            return Ok(cells);
        }
        // A session of its own: what it sets is for this only.
        let mut own = self.connect().await?;
        own.ask(statements::SWEEPING).await?;
        let [raise, remove] = statements::sweep();
        own.ask(&raise).await?;
        Ok(cells + affected(&own.ask(&remove).await?))
    }

    async fn read_cell(&self, name: &str) -> Tried<Option<Cell>> {
        cells::read(self, name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Tried<CellWrite> {
        cells::write(self, name, expect, value, ttl).await
    }

    async fn cells(&self, from: Begin<'_>, limit: usize) -> Tried<Vec<Cell>> {
        cells::list(self, from, limit).await
    }

    async fn clock(&self) -> Tried<Moment> {
        let answers = self.ask(&format!("SELECT {}", statements::NOW)).await?;
        let row = answers.last().and_then(|answer| answer.rows.first());
        let now = row.map(|row| value(row, 0)).transpose()?.unwrap_or_default();
        Ok(Moment(now))
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        doctor::examine(self).await
    }

    fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    async fn living(&self, sessions: &[ClientId]) -> Tried<Vec<ClientId>> {
        session::living(self, sessions).await
    }

    fn deaf(&self) -> Option<Duration> {
        Some(POLL)
    }

    fn patience(&self) -> Duration {
        self.config.common.command_timeout
    }

    async fn close(&self) {
        self.pool.close();
        if let Some(session) = &self.session {
            session.stop();
        }
    }
}

/// How many rows the first statement changed.
pub(super) fn affected(answers: &[Answered]) -> u64 {
    answers.first().map_or(0, |answer| answer.affected)
}

/// Floor, clock and row, as the last statement shows them.
fn found(answers: &[Answered]) -> Result<Found> {
    let row = answers.last().and_then(|answer| answer.rows.first()).ok_or_else(|| {
        let message =
            "the table leasehold_meta has no floor; was it emptied? drop our tables and open the store again";
        Error::new(ErrorKind::Internal, Operation::Inspect, message)
    })?;
    Ok(Found { now: Moment(value(row, 1)?), floor: value(row, 0)?, row: kept(row, 2)? })
}

/// A row, from this column on.
pub(super) fn kept(row: &mysql_async::Row, at: usize) -> Result<Option<Row>> {
    let Some(version) = value(row, at)? else { return Ok(None) };
    Ok(Some(Row {
        version,
        fence: value(row, at + 1)?,
        fence_base: value(row, at + 2)?,
        moment_base: Moment(value(row, at + 3)?),
        text: value(row, at + 4)?,
    }))
}

/// The value of a column.
pub(super) fn value<T: mysql_async::prelude::FromValue>(row: &mysql_async::Row, at: usize) -> Result<T> {
    let value = row.as_ref(at).cloned().unwrap_or(Value::NULL);
    mysql_async::from_value_opt(value).map_err(|error| {
        let message = "a table of locks has another shape than ours; did another program change it?";
        Error::new(ErrorKind::Internal, Operation::Inspect, message).because(error.to_string())
    })
}
