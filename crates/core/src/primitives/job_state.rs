//! What is known of jobs, one by one and page by page.

use std::time::Duration;

use leasehold_schedule::Slot;

use crate::{
    client::Client,
    engine::{
        book::Book,
        ledger,
        past::{PastRun, Paused, Running, Totals},
    },
    error::{Error, ErrorKind, Operation, Result},
};

/// What is known of a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobState {
    /// Its name.
    pub name: String,
    /// The schedule that it was last run by, as it was written.
    pub schedule: Option<String>,
    /// The time zone of that.
    pub zone: Option<String>,
    /// The last slot that was given out, or was over when the job was first seen.
    pub last: Option<Slot>,
    /// The next slot, whether or not it is paused.
    pub next: Option<Slot>,
    /// An operator paused it.
    pub paused: Option<Paused>,
    /// The run that goes on.
    pub running: Option<Running>,
    /// Until when the last run counts, as the time since 1970: nobody runs it before.
    pub rests_until: Option<Duration>,
    /// The last runs, the oldest first.
    pub runs: Vec<PastRun>,
    /// How many slots ended how.
    pub totals: Totals,
}

/// One page of jobs.
#[derive(Clone, Debug, Default)]
pub struct JobPage {
    /// The jobs of this page.
    pub jobs: Vec<JobState>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

impl JobState {
    pub(super) fn of(name: String, book: Book, now: Duration) -> Self {
        let next = book.next(now);
        let Book { schedule, last, paused, running, rests_until, runs, totals, .. } = book;
        let (schedule, zone) = schedule.map(|written| (written.cron, written.zone)).unzip();
        let rests_until = rests_until.filter(|until| *until > now);
        Self { name, schedule, zone, last, next, paused, running, rests_until, runs, totals }
    }
}

/// The jobs whose names begin with `prefix`. Whether the process of a run still lives is not looked at here.
pub(crate) async fn list(
    client: &Client,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<JobPage> {
    serves(client)?;
    let ours = [ledger::PREFIX, client.prefix()].concat();
    let cells = client.backend().list_cells(&[&ours, prefix].concat(), cursor, limit.clamp(1, 1000)).await;
    let cells = cells.map_err(|error| error.during(Operation::Job))?;
    let told = client.backend().wall_clock().await.map_err(|error| error.during(Operation::Job))?;
    let now = told.unwrap_or_else(|| client.engine().clock.wall());
    let mut jobs = Vec::with_capacity(cells.cells.len());
    for cell in cells.cells {
        let name = cell.name.strip_prefix(&ours).unwrap_or(&cell.name).to_owned();
        let book = Book::read(&cell.value).map_err(|error| error.about(&name))?;
        jobs.push(JobState::of(name, book, now));
    }
    Ok(JobPage { jobs, next: cells.next })
}

/// Whether jobs can be had here at all.
pub(super) fn serves(client: &Client) -> Result<()> {
    client.engine().refuse_if_closed(Operation::Job)?;
    let info = client.info();
    if info.capabilities.cells {
        return Ok(());
    }
    let message =
        format!("{} keeps no values, so it cannot tell which slots were run; use another store", info.scheme);
    Err(Error::new(ErrorKind::Unsupported, Operation::Job, message))
}
