//! PostgreSQL as a database of records.

use std::{
    sync::{OnceLock, atomic::AtomicU64},
    time::Duration,
};

use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Operation, Result,
    backend::{
        Capabilities, Cell, CellWrite, Expect, Finding, Guarantee, Level, Recorded, StoreInfo, record::Moment,
    },
};
use tokio_postgres::{
    SimpleQueryMessage, SimpleQueryRow,
    types::{ToSql, Type},
};

use super::{
    Postgres, PostgresConfig,
    bell::Listener,
    cells,
    connection::{Connection, Connector},
    doctor,
    error::failed,
    prepared::{Prepared, Value},
    session::{self, AdvisoryLock},
    setup, statements,
};
use crate::server::{
    After, Database, First, Found, Row, Swapped, Tried,
    bell::Bells,
    database::{Begin, rest, signed, unsigned},
    pool::Pool,
    session::Session,
};

/// How often waiters look for themselves when nobody can ring them.
const POLL: Duration = Duration::from_millis(50);

/// A parameter with its type: so a statement needs no name and no preparation.
pub(super) type Parameter<'p> = (&'p (dyn ToSql + Sync), Type);

/// The tables of one PostgreSQL database.
#[derive(Debug)]
pub struct PostgresDatabase {
    pub(super) config: PostgresConfig,
    pub(super) connector: Connector,
    pool: Pool<Connection>,
    bells: Bells,
    listener: OnceLock<Listener>,
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

impl Postgres {
    /// Opens a store, creating its tables if they are missing and we may.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `Denied` if it refuses user, password or rights (with the SQL
    /// that somebody else may run for us), `Config` for a database that does not exist.
    ///
    /// # Cancel safety
    /// Dropped half-way it may leave empty tables behind, which does no harm.
    pub async fn open(config: PostgresConfig) -> Result<Recorded<Self>> {
        let place = format!("postgres://{}", config.place());
        let connector = Connector::new(&config)?;
        let bells = Bells::default();
        let mut database = PostgresDatabase {
            pool: Pool::new(config.common.connections, config.common.command_timeout),
            connector,
            config,
            bells: bells.clone(),
            listener: OnceLock::new(),
            cell_writes: AtomicU64::new(0),
            session: None,
        };
        let connecting = |error: Error| error.during(Operation::Connect).about(&place);
        let identity = setup::prepare(&database).await.map_err(connecting)?;
        if let Some(patience) = database.config.common.session {
            let lock = AdvisoryLock { connector: database.connector.outlasting(patience), patience };
            database.session = Some(Session::begin(lock, patience).await.map_err(connecting)?);
        }
        let guarantee = if database.session.is_some() { IN_SESSIONS } else { IN_LEASES };
        let mut can = Capabilities::default();
        can.clock = true;
        let info =
            StoreInfo::new("postgres", place, guarantee).with_identity(identity).with_capabilities(can);
        Ok(Self::new(info, database, bells))
    }
}

impl PostgresDatabase {
    /// Runs one statement as a transaction of its own.
    pub(super) async fn ask(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Tried<Vec<tokio_postgres::Row>> {
        let work = async |connection: &mut Connection| {
            connection.client.query_typed(statement, parameters).await.map_err(failed)
        };
        self.pool.with(self.connector.connect(), work).await
    }

    /// Runs a statement that the server keeps, as a transaction of its own.
    async fn perform(&self, statement: &Prepared, values: &[Value<'_>]) -> Tried<Vec<SimpleQueryRow>> {
        let work = async |connection: &mut Connection| {
            let Connection { client, known, .. } = connection;
            statement.perform(client, known, values).await.map_err(failed)
        };
        self.pool.with(self.connector.connect(), work).await
    }

    /// The same as [`ask`](Self::ask) for a statement whose first column says whether the server is a standby: then nothing it says counts, and we
    /// connect anew.
    pub(super) async fn ask_primary(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Tried<Vec<tokio_postgres::Row>> {
        let work = async |connection: &mut Connection| {
            let rows = connection.client.query_typed(statement, parameters).await.map_err(failed)?;
            if only(&rows)?.try_get(0).map_err(strange)? {
                connection.close();
                return Err(session::standby().into());
            }
            Ok(rows)
        };
        self.pool.with(self.connector.connect(), work).await
    }

    /// Runs several statements without parameters as one transaction; the first column of the last row.
    pub(super) async fn script(&self, statements: &str) -> Tried<Option<String>> {
        let work = async |connection: &mut Connection| {
            let messages = connection.client.simple_query(statements).await.map_err(failed)?;
            let value = messages.iter().rev().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            Ok(value)
        };
        self.pool.with(self.connector.connect(), work).await
    }

    async fn make(&self, name: &str, found: &Found, after: &After) -> Tried<Vec<SimpleQueryRow>> {
        let values = [
            Value::Text(name),
            Value::Number(signed(found.floor)?),
            Value::Number(signed(after.fence)?),
            text(after),
            due(after)?,
        ];
        self.perform(&statements::MAKE, &values).await
    }
}

impl Database for PostgresDatabase {
    async fn look(&self, name: &str) -> Tried<Found> {
        if name.contains('\0') {
            // The server knows no such text, so it has no such name.
            return Ok(Found { now: Moment(0), floor: 0, row: None });
        }
        let rows = self.perform(&statements::LOOK, &[Value::Text(name)]).await?;
        Ok(found(only(&rows)?)?)
    }

    async fn claim(&self, name: &str, first: &First) -> Tried<Found> {
        let (fences, rest) = (signed(first.fences)?, signed(rest(first.ends))?);
        let values =
            [Value::Text(name), Value::Text(&first.text), Value::Number(fences), Value::Number(rest)];
        match self.perform(&statements::CLAIM, &values).await?.first() {
            Some(row) => Ok(found(row)?),
            None => self.look(name).await,
        }
    }

    async fn swap(&self, name: &str, before: &Found, after: &After) -> Tried<Swapped> {
        let rows = match before.version() {
            None => self.make(name, before, after).await?,
            Some(version) => {
                let wake = after.wake.iter().map(ClaimId::to_string).collect::<Vec<_>>().join(" ");
                let values = [
                    Value::Text(name),
                    Value::Number(signed(version)?),
                    Value::Number(signed(after.fence)?),
                    text(after),
                    due(after)?,
                    Value::Text(&wake),
                ];
                self.perform(&statements::SWAP, &values).await?
            }
        };
        match rows.first() {
            Some(row) => Ok(Swapped::Done(certain(row, 0)?)),
            None => Ok(Swapped::Other(self.look(name).await?)),
        }
    }

    async fn page(&self, from: Begin<'_>, limit: usize) -> Tried<(Moment, Vec<(String, Row)>)> {
        let (name, statement) = match from {
            Begin::At(name) => (name, &statements::PAGE_FROM),
            Begin::After(name) => (name, &statements::PAGE_AFTER),
        };
        if name.contains('\0') {
            // The server knows no such text: none of its names begins so.
            return Ok((Moment(0), Vec::new()));
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.perform(statement, &[Value::Text(name), Value::Number(limit)]).await?;
        let mut now = Moment(0);
        let mut page = Vec::with_capacity(rows.len());
        for row in &rows {
            now = Moment(certain(row, 1)?);
            if let Some(kept) = kept(row, 2)? {
                page.push((column(row, 0)?.unwrap_or_default().to_owned(), kept));
            }
        }
        Ok((now, page))
    }

    async fn sweep(&self) -> Tried<u64> {
        let cells = cells::bury(self).await?;
        let many = self.ask(statements::MANY_DUE, &[]).await?;
        if !only(&many)?.try_get::<_, bool>(0).map_err(strange)? {
            return Ok(cells);
        }
        let rows = self.script(statements::SWEEP).await?.and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok(cells + rows)
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
        let rows = self.ask(statements::CLOCK, &[]).await?;
        Ok(Moment(unsigned(only(&rows)?.try_get(0).map_err(strange)?)))
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

    fn listen(&self) {
        if self.config.listens {
            self.listener.get_or_init(|| Listener::start(self.connector.clone(), self.bells.clone()));
        }
    }

    fn deaf(&self) -> Option<Duration> {
        (!self.listener.get().is_some_and(Listener::hears)).then_some(POLL)
    }

    fn patience(&self) -> Duration {
        self.config.common.command_timeout
    }

    async fn close(&self) {
        self.pool.close();
        if let Some(listener) = self.listener.get() {
            listener.stop();
        }
        if let Some(session) = &self.session {
            session.stop();
        }
    }
}

fn due(after: &After) -> Result<Value<'static>> {
    after.due.map_or(Ok(Value::Null), |due| signed(due.0).map(Value::Number))
}

fn text(after: &After) -> Value<'_> {
    after.text.as_deref().map_or(Value::Null, Value::Text)
}

/// The one row that a statement of ours gives.
pub(super) fn only<R>(rows: &[R]) -> Result<&R> {
    rows.first().ok_or_else(|| {
        let message =
            "the table leasehold_meta has no floor; was it emptied? drop our tables and open the store again";
        Error::new(ErrorKind::Internal, Operation::Inspect, message)
    })
}

/// Floor, clock and row.
fn found(row: &SimpleQueryRow) -> Result<Found> {
    Ok(Found { floor: certain(row, 0)?, now: Moment(certain(row, 1)?), row: kept(row, 2)? })
}

fn kept(row: &SimpleQueryRow, at: usize) -> Result<Option<Row>> {
    let Some(version) = number(row, at)? else { return Ok(None) };
    Ok(Some(Row {
        version,
        fence: certain(row, at + 1)?,
        fence_base: certain(row, at + 2)?,
        moment_base: Moment(certain(row, at + 3)?),
        text: column(row, at + 4)?.map(str::to_owned),
    }))
}

fn column(row: &SimpleQueryRow, at: usize) -> Result<Option<&str>> {
    row.try_get(at).map_err(strange)
}

/// A number, if there is one.
fn number(row: &SimpleQueryRow, at: usize) -> Result<Option<u64>> {
    column(row, at)?.map(|text| text.parse::<i64>().map(unsigned).map_err(strange)).transpose()
}

/// A number that is always there.
fn certain(row: &SimpleQueryRow, at: usize) -> Result<u64> {
    number(row, at)?.ok_or_else(|| strange("a column is empty"))
}

/// A column of another type than ours.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(super) fn strange(error: impl ToString) -> Error {
    let message = "a table of locks has another shape than ours; did another program change it?";
    Error::new(ErrorKind::Internal, Operation::Inspect, message).because(error.to_string())
}
