//! What a database must be able to do to keep our records: look, claim, swap.
//!
//! Every method is one statement, or one transaction that the server runs by itself, and a look after one that wrote
//! nothing: a future that is dropped leaves nothing open on the server. An error of a method says whether it took effect, see [`Failure`].

use std::{future::Future, time::Duration};

use leasehold_core::{
    ClaimId, ClientId, Error, Result,
    backend::{
        Cell, CellPage, CellWrite, Expect, Finding,
        record::{Moment, Record},
    },
};

use super::session::Session;

/// Why one try at a statement came to nothing.
#[derive(Debug)]
pub enum Failure {
    /// The server chose us to give way: a deadlock, a serialization failure. It took no effect and is worth another try.
    GaveWay(Error),
    /// Trying again is not ours to decide.
    Final(Error),
}

/// The result of one try.
pub type Tried<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Failure {
    /// The error, whatever is to be done about it.
    pub fn into_error(self) -> Error {
        match self {
            Self::GaveWay(error) | Self::Final(error) => error,
        }
    }
}

/// What the server has of one name.
#[derive(Clone, Debug)]
pub struct Found {
    /// The server's clock when it was asked.
    pub now: Moment,
    /// What a name without a row starts from.
    pub floor: u64,
    /// The name's row.
    pub row: Option<Row>,
}

/// The row of a name.
#[derive(Clone, Debug)]
pub struct Row {
    /// Grows with every write, and is never one that the name had before.
    pub version: u64,
    /// The newest fence.
    pub fence: u64,
    /// Where the text's fences are reckoned from.
    pub fence_base: u64,
    /// Where the text's moments are reckoned from. Without a text: when the row was last written.
    pub moment_base: Moment,
    /// The record, if anybody is in it.
    pub text: Option<String>,
}

impl Row {
    /// The record, as if it had always been told from zero.
    ///
    /// # Errors
    /// `Internal` or `Unsupported` if the text is none of ours.
    pub fn record(&self) -> Result<Record> {
        match &self.text {
            Some(text) => Ok(Record::decode(text)?.reckoned_from(self.fence_base, self.moment_base)),
            None => Ok(Record::new(self.fence)),
        }
    }
}

impl Found {
    /// The record of the name, a new one if it has none.
    ///
    /// # Errors
    /// As for [`Row::record`].
    pub fn record(&self) -> Result<Record> {
        self.row.as_ref().map_or_else(|| Ok(Record::new(self.floor)), Row::record)
    }

    /// The version a swap has to find; `None` if it has to find no row.
    pub fn version(&self) -> Option<u64> {
        self.row.as_ref().map(|row| row.version)
    }
}

/// What a name that nobody uses is to become.
#[derive(Debug)]
pub struct First {
    /// The record, reckoned from the row's fence and the server's clock.
    pub text: String,
    /// By how many the fence grows.
    pub fences: u64,
    /// When time alone will have emptied it, reckoned from the server's clock.
    pub ends: Moment,
}

/// What a row is to be after a swap.
#[derive(Debug)]
pub struct After {
    /// The newest fence.
    pub fence: u64,
    /// The record, told from zero, if anybody is in it.
    pub text: Option<String>,
    /// When the row is due for removal; `None` if time alone does not empty it.
    pub due: Option<Moment>,
    /// Whom to wake elsewhere once it is committed.
    pub wake: Vec<ClaimId>,
}

/// What became of a swap.
#[derive(Debug)]
pub enum Swapped {
    /// It is written; this is the row's new version.
    Done(u64),
    /// The row was not as expected. This is how it is, or how it was a moment ago.
    Other(Found),
}

/// A database that keeps our records.
pub trait Database: std::fmt::Debug + Send + Sync + 'static {
    /// The row of a name.
    fn look(&self, name: &str) -> impl Future<Output = Tried<Found>> + Send;

    /// Writes this text, reckoned from the row's fence and the server's clock, if nobody uses the name; then the row as
    /// it is, whoever wrote it.
    fn claim(&self, name: &str, first: &First) -> impl Future<Output = Tried<Found>> + Send;

    /// Writes the row if it is as it was found.
    fn swap(&self, name: &str, found: &Found, after: &After) -> impl Future<Output = Tried<Swapped>> + Send;

    /// Rows with a text, ordered by name, from `from` on or after it, at most so many, and the server's clock.
    fn page(
        &self,
        from: Begin<'_>,
        limit: usize,
    ) -> impl Future<Output = Tried<(Moment, Vec<(String, Row)>)>> + Send;

    /// Removes some rows that are due, raising the floor above them in the same transaction, and some cells that are over.
    /// Says how many; none if there are too few to be worth it.
    fn sweep(&self) -> impl Future<Output = Tried<u64>> + Send;

    /// Reads a cell.
    fn read_cell(&self, name: &str) -> impl Future<Output = Tried<Option<Cell>>> + Send;

    /// Writes a cell if it is as expected.
    fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> impl Future<Output = Tried<CellWrite>> + Send;

    /// Cells by name, from `from` on or after it, at most so many. They may be of another prefix.
    fn cells(&self, from: Begin<'_>, limit: usize) -> impl Future<Output = Tried<Vec<Cell>>> + Send;

    /// The server's clock, in UTC.
    fn clock(&self) -> impl Future<Output = Tried<Moment>> + Send;

    /// See [`Backend::diagnose`](leasehold_core::backend::Backend::diagnose).
    fn diagnose(&self) -> impl Future<Output = Result<Vec<Finding>>> + Send;

    /// Our own session, if there is one.
    fn session(&self) -> Option<&Session>;

    /// Those of these sessions that live.
    fn living(&self, sessions: &[ClientId]) -> impl Future<Output = Tried<Vec<ClientId>>> + Send;

    /// Called when somebody begins to wait: rings of other machines are wanted from now on. No I/O.
    fn listen(&self) {}

    /// How often to look without being rung, if rings of other machines do not come; `None` if they do.
    fn deaf(&self) -> Option<Duration>;

    /// How long one step may take: to give way again and again is not to last longer.
    fn patience(&self) -> Duration;

    /// Closes what it has.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin<'n> {
    /// With this name, or the next one.
    At(&'n str),
    /// After this name.
    After(&'n str),
}

impl<'n> Begin<'n> {
    /// The first name a page may have; the cursor was on the page before.
    pub(crate) fn new(prefix: &'n str, cursor: Option<&'n str>) -> Self {
        match cursor {
            Some(cursor) if cursor >= prefix => Self::After(cursor),
            _ => Self::At(prefix),
        }
    }

    pub(crate) fn name(self) -> &'n str {
        match self {
            Self::At(name) | Self::After(name) => name,
        }
    }

    /// The comparison that it is, in SQL.
    pub(crate) fn comparison(self) -> &'static str {
        match self {
            Self::At(_) => ">=",
            Self::After(_) => ">",
        }
    }
}

/// A page of cells from one more than fits, all of `prefix`.
pub(crate) fn cell_page(prefix: &str, limit: usize, mut cells: Vec<Cell>) -> CellPage {
    let full = cells.len() > limit;
    cells.truncate(limit);
    let last = cells.last().map(|cell| cell.name.clone());
    cells.retain(|cell| cell.name.starts_with(prefix));
    let next = last.filter(|last| full && last.starts_with(prefix));
    CellPage { cells, next }
}

/// How long a row is left alone that nobody uses, in microseconds: who used it may come again.
const REST: u64 = 60_000_000;

/// What the moment at which a row is due is a multiple of. The database finds rows by it, so it should seldom change: then
/// a row is rewritten in its place.
pub(crate) const GRAIN: u64 = 600_000_000;

/// When the row of a record that ends then is due for removal: it may go some time after nobody can be in it.
pub(crate) fn due(now: Moment, ends: Moment) -> Moment {
    Moment((now.max(ends).0.saturating_add(REST) / GRAIN + 1).saturating_mul(GRAIN))
}

/// The same for a record reckoned from the server's clock: what to add to that before it is rounded up.
pub(crate) fn rest(ends: Moment) -> u64 {
    ends.0.saturating_add(REST)
}

/// PostgreSQL's integers have a sign. Ours grow by one from zero, so the cast is exact.
#[cfg(feature = "postgres")]
pub(crate) fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

/// The other way.
#[cfg(feature = "postgres")]
pub(crate) fn signed(number: u64) -> Result<i64> {
    use leasehold_core::{ErrorKind, Operation};
    i64::try_from(number).map_err(|error| {
        Error::new(ErrorKind::Internal, Operation::Inspect, "a number grew too large").because(error)
    })
}

/// A ttl in microseconds, such that added to any clock it is still a number.
pub(crate) fn micros(ttl: Duration) -> i64 {
    const EVER: i64 = i64::MAX / 2;
    i64::try_from(ttl.as_micros()).unwrap_or(EVER).min(EVER)
}
