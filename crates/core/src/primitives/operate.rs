//! What an operator sees of jobs and does with them: their state, the list, pausing, forgetting. Nothing here runs one.

use std::time::Duration;

use leasehold_schedule::Slot;

use super::Job;
use crate::{
    audit::Action,
    client::Client,
    engine::{
        book::{Book, words},
        ledger::{self, Edit, Ledger},
        past::{PastRun, Paused, Running, Totals},
    },
    error::{Error, ErrorKind, Operation, Result},
    key::Key,
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
    /// The last slot is later than now by more than the time between two: whoever gave it out had a clock that was ahead by
    /// this much. Nobody runs the job until then, see [`Job::resume_from_now`].
    pub ahead: Option<Duration>,
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

impl Job {
    /// Keeps everybody from beginning a run, until it is resumed, in the name of this client's user. One that goes on is
    /// not touched. Says what it was before. Of a long reason the first 500 bytes are kept. The
    /// [audit](Client::audit) has an entry of it, as of the other acts here.
    ///
    /// # Cancel safety
    /// What was on its way may be written or not.
    pub async fn pause(&self, reason: &str) -> Result<Option<Paused>> {
        self.pause_as(&self.lock.client().operator(), reason).await
    }

    /// The same in somebody else's name.
    ///
    /// # Cancel safety
    /// What was on its way may be written or not.
    pub async fn pause_as(&self, by: &str, reason: &str) -> Result<Option<Paused>> {
        let why = words(reason);
        let edit = |book: &mut Book, since| {
            let before = book.paused.clone();
            book.paused = Some(Paused { by: by.to_owned(), why: why.clone(), since });
            Edit::Write(before)
        };
        let before = self.change(edit).await?;
        self.note(Action::Pause, by, &why).await?;
        Ok(before)
    }

    /// Lets it go on, in the name of this client's user. Slots that fell into the pause are written down as missed. Says
    /// what it was before.
    ///
    /// # Cancel safety
    /// What was on its way may be written or not.
    pub async fn resume(&self) -> Result<Option<Paused>> {
        self.resume_as(&self.lock.client().operator()).await
    }

    /// The same in somebody else's name.
    ///
    /// # Cancel safety
    /// What was on its way may be written or not.
    pub async fn resume_as(&self, by: &str) -> Result<Option<Paused>> {
        let edit = |book: &mut Book, now| {
            let before = book.paused.clone();
            book.resume(now);
            if before.is_some() { Edit::Write(before) } else { Edit::Leave(None) }
        };
        let before = self.change(edit).await?;
        if before.is_some() {
            self.note(Action::Resume, by, "").await?;
        }
        Ok(before)
    }

    /// Lets it go on from this moment, whether or not it was paused: the last slot is the latest one by now. For a job that
    /// was run by a clock far ahead, and would wait until the time that one told has come. Says whether it was ahead.
    ///
    /// # Cancel safety
    /// What was on its way may be written or not.
    pub async fn resume_from_now(&self) -> Result<bool> {
        let edit = |book: &mut Book, now| {
            let (before, was_ahead) = (book.clone(), book.ahead(now).is_some());
            book.resume_from(now);
            if *book == before { Edit::Leave((was_ahead, false)) } else { Edit::Write((was_ahead, true)) }
        };
        let (was_ahead, is_changed) = self.change(edit).await?;
        if is_changed {
            self.note(Action::Resume, &self.lock.client().operator(), "from now on").await?;
        }
        Ok(was_ahead)
    }

    /// Makes the store forget it: its schedule, its pause and its history. Whoever runs it still makes it known again, as a
    /// new one. Says whether there was anything to forget.
    ///
    /// # Cancel safety
    /// What was on its way may be forgotten or not.
    pub async fn forget(&self) -> Result<bool> {
        let was_known = self.ledger()?.forget().await.map_err(|error| self.about(error))?;
        if was_known {
            self.note(Action::Forget, &self.lock.client().operator(), "").await?;
        }
        Ok(was_known)
    }

    /// What the store has of it; `None` if nobody has run or paused it yet.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn state(&self) -> Result<Option<JobState>> {
        let about = |error: Error| self.about(error);
        let (client, ledger) = (self.lock.client(), self.ledger()?);
        let Some(mut book) = ledger.read().await.map_err(about)? else { return Ok(None) };
        if let Some(id) = book.running.as_ref().map(|running| running.start.id) {
            // Whoever runs it holds the lock; one that does not has ended since, or has died and nobody has come by.
            let held = client.inspect(self.name()).await?;
            if held.is_none_or(|state| state.holders.iter().all(|holder| holder.id != id)) {
                let Some(anew) = ledger.read().await.map_err(about)? else { return Ok(None) };
                book = anew;
                book.bury(|other| other != id);
            }
        }
        let now = ledger.sight().await.map_err(about)?.time;
        Ok(Some(JobState::of(self.name().to_owned(), book, now)))
    }

    async fn change<T>(&self, edit: impl FnMut(&mut Book, Duration) -> Edit<T>) -> Result<T> {
        self.ledger()?.change(edit).await.map_err(|error| self.about(error))
    }

    async fn note(&self, action: Action, by: &str, why: &str) -> Result<()> {
        self.lock.client().note_act(action, &self.lock.key()?, by, why).await;
        Ok(())
    }

    fn ledger(&self) -> Result<Ledger> {
        let (client, key) = (self.lock.client(), self.lock.key()?);
        serves(client).map_err(|error| self.about(error))?;
        Ok(Ledger::of(client.engine(), &key))
    }
}

impl JobState {
    fn of(name: String, book: Book, now: Duration) -> Self {
        let (next, ahead) = (book.next(now), book.ahead(now));
        let Book { schedule, last, paused, running, rests_until, runs, totals, .. } = book;
        let (schedule, zone) = schedule.map(|written| (written.cron, written.zone)).unzip();
        let rests_until = rests_until.filter(|until| *until > now);
        Self { name, schedule, zone, last, next, ahead, paused, running, rests_until, runs, totals }
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
    let ours = [ledger::PREFIX, &Key::beginning(client.prefix(), "")?].concat();
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
