//! The store: a ledger, bells, and upkeep around a database.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, ClientId, Error, ErrorKind, Key, Operation, Result,
    backend::{
        Attempt, Cell, CellPage, CellWrite, Expect, Finding, Life, LockPage, LockState, RecordStore,
        Recorded, StoreInfo,
        record::{Answer, Step},
    },
    time::Clock,
};

use super::{
    Database, Failure, ServerBell, Tried,
    bell::Bells,
    database::{Begin, cell_page},
    ledger::Ledger,
    session::{Session, gone},
    sweep::Sweeper,
};

/// The shortest pause between two looks of one who is not woken.
const SOON: Duration = Duration::from_millis(2);

/// Beyond so many others ahead, more of them change nothing.
const CROWD: usize = 20;

/// How often those who wait look whether the session of who is before them has died.
const DEATH: Duration = Duration::from_secs(1);

/// How many steps of a batch are taken side by side.
const SIDE_BY_SIDE: usize = 64;

/// How often a statement of a single try is repeated when the server chose us to give way.
const TRIES: u32 = 8;

/// How many rows one page looks at beyond those it shows: rows whose leases have run out are not shown.
const BLANKS: usize = 1024;

/// Locks in a database server, for all machines that reach it.
pub struct Served<D> {
    info: StoreInfo,
    ledger: Arc<Ledger<D>>,
    sweeper: Sweeper,
    closed: AtomicBool,
}

impl<D> fmt::Debug for Served<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("address", &self.info.address).finish_non_exhaustive()
    }
}

impl<D: Database> Served<D> {
    pub(crate) fn new(info: StoreInfo, database: D, bells: Bells) -> Recorded<Self> {
        let ledger = Arc::new(Ledger::new(database, bells));
        let swept = ledger.clone();
        let sweeper = Sweeper::start(move || {
            let ledger = swept.clone();
            async move { ledger.database.sweep().await }
        });
        Recorded::new(Self { info, ledger, sweeper, closed: AtomicBool::new(false) })
    }

    pub(crate) fn database(&self) -> &D {
        &self.ledger.database
    }

    /// The session in whose name we ask.
    fn own(&self) -> Option<ClientId> {
        self.database().session().and_then(Session::id)
    }

    async fn take(&self, key: &Key, step: &Step) -> Result<Answer> {
        self.open_still()?;
        let (session, sent) = (self.database().session(), Clock::boot().now());
        let own = self.own();
        if let (Some(_), None, Step::Attempt { spec, .. }) = (session, own, step)
            && spec.life == Life::Session
        {
            return Err(gone());
        }
        let taken = self.ledger.take(key, step, own).await?;
        if taken.leaves_row {
            self.sweeper.row_left();
        }
        let answer = taken.answer.map(|answer| self.hinted(answer))?;
        match session.filter(|_| taken.in_session) {
            Some(session) => session.bounded(own, sent, answer),
            None => Ok(answer),
        }
    }

    /// Where nobody rings, those who wait look again soon: the sooner the shorter the lock has been held, since what is
    /// held briefly is given back soon; and the first in line sooner than the last.
    fn hinted(&self, mut answer: Answer) -> Answer {
        if let (Answer::Attempt(Attempt::Busy(busy)), Some(poll)) = (&mut answer, self.database().deaf()) {
            let held = busy.holders.iter().map(|holder| holder.held_for).max().unwrap_or_default();
            let pause = (held / 2).clamp(SOON, poll) * (busy.ahead.min(CROWD) as u32 + 1);
            busy.retry_after = Some(busy.retry_after.map_or(pause, |hint| hint.min(pause)));
        }
        if let (Answer::Attempt(Attempt::Busy(busy)), Some(_)) = (&mut answer, self.database().session()) {
            // Nobody rings when a session dies.
            busy.retry_after = busy.retry_after.map(|hint| hint.min(DEATH));
        }
        answer
    }

    /// Does one statement, again if the server chose us to give way.
    async fn once<T, F>(&self, statement: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Tried<T>>,
    {
        self.open_still()?;
        for _ in 1..TRIES {
            match statement().await {
                Err(Failure::GaveWay(_)) => tokio::task::yield_now().await,
                done => return done.map_err(Failure::into_error),
            }
        }
        statement().await.map_err(Failure::into_error)
    }

    fn open_still(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            let message = "this store was closed; open it again";
            return Err(Error::new(ErrorKind::Closed, Operation::Inspect, message));
        }
        Ok(())
    }
}

impl<D: Database> RecordStore for Served<D> {
    type Bell = ServerBell;

    fn info(&self) -> &StoreInfo {
        &self.info
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        let operation = operation(&step);
        self.take(key, &step).await.map_err(|error| error.during(operation).about(key.name()))
    }

    async fn apply_all(&self, steps: Vec<(Key, Step)>) -> Vec<Result<Answer>> {
        let mut answers = Vec::with_capacity(steps.len());
        for batch in steps.chunks(SIDE_BY_SIDE) {
            answers.extend(join_all(batch.iter().map(|(key, step)| self.apply(key, step.clone()))).await);
        }
        answers
    }

    fn bell(&self, _key: &Key, id: ClaimId) -> ServerBell {
        let bell = self.ledger.bells.arm(id);
        self.database().listen();
        bell
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        let about = |error: Error| error.during(Operation::Inspect).about(key.name());
        let found = self.once(|| self.database().look(key.full())).await.map_err(about)?;
        let record = found.record().map_err(about)?;
        let seen = self.ledger.judged(found.now, self.own(), |around| record.view(key.full(), around)).await;
        seen.map_err(|failure| about(failure.into_error()))
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        let (limit, from) = (limit.max(1), Begin::new(prefix, cursor));
        let most = limit.saturating_add(BLANKS);
        let (now, rows) = self.once(|| self.database().page(from, most)).await?;
        let full = rows.len() == most;
        let (mut page, mut last) = (LockPage::default(), None);
        for (name, row) in rows {
            if !name.starts_with(prefix) {
                return Ok(page);
            }
            if page.locks.len() == limit {
                page.next = last;
                return Ok(page);
            }
            let record = row.record().map_err(|error| error.about(&name))?;
            let seen = self.ledger.judged(now, self.own(), |around| record.view(&name, around)).await;
            page.locks.extend(seen.map_err(Failure::into_error)?);
            last = Some(name);
        }
        page.next = last.filter(|_| full);
        Ok(page)
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        self.once(|| self.database().read_cell(name)).await.map_err(in_cell)
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        self.once(|| self.database().write_cell(name, expect, value, ttl)).await.map_err(in_cell)
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        let (limit, from) = (limit.max(1), Begin::new(prefix, cursor));
        let cells = self.once(|| self.database().cells(from, limit + 1)).await.map_err(in_cell)?;
        Ok(cell_page(prefix, limit, cells))
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        let now = self.once(|| self.database().clock()).await?;
        Ok(Some(Duration::from_micros(now.0)))
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        self.open_still()?;
        self.database().diagnose().await
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        self.sweeper.stop();
        self.database().close().await;
        Ok(())
    }
}

fn in_cell(error: Error) -> Error {
    error.during(Operation::Cell)
}

/// What a step is part of, for errors.
fn operation(step: &Step) -> Operation {
    match step {
        Step::Attempt { .. } | Step::Raise { .. } => Operation::Acquire,
        Step::Renew(_) => Operation::Renew,
        Step::Recount { .. } => Operation::Reenter,
        Step::Release { .. } => Operation::Release,
        Step::Break { .. } => Operation::Break,
        Step::Latch(_) => Operation::Latch,
    }
}
