//! A job: work that a whole fleet is ready to do, and one of it does, once for each slot of a schedule.

use std::{fmt, sync::Arc, time::Duration};

use leasehold_schedule::Schedule;

use super::{Lock, operate::serves, options::MIN_MAX_HOLD, turns};
use crate::{
    backend::Life,
    client::Client,
    engine::{
        acquire::Patience,
        book::{CatchUp, Rules},
    },
    error::{Error, Operation, Result},
    span::Span,
    sync::atomic::AtomicBool,
};

pub use super::run::{BoxedRun, BoxedWork, Run, Turn};

/// Work that runs once per slot across a fleet, whatever the clocks of its machines say.
///
/// Every process says the same: this is the job, this is its schedule, [`run`](Self::run) it. For each slot one of them runs
/// it. Slots are decided on the store's clock where it has one, and written down in the store before the work begins: even
/// two who both believe to hold the job's lock cannot run one slot twice. A process that dies takes its slot with it; that
/// is shown in the [history](Self::state), and is not run again. On a store that can forget what it has promised when it
/// fails over, of the strength [`S0`](crate::backend::Level::S0), a slot whose write was forgotten may be run once more; on Redis
/// `wait_replicas` makes that rarer. A store that has lost all takes the job for a new one.
///
/// While it runs it holds the lock of that name, so an operator sees it, and can break it, like any other lock.
///
/// A job does not run for the time before it was first seen. What happens to slots that nobody could run in time is for
/// [`catch_up`](Self::catch_up) to say.
///
/// ```no_run
/// # async fn example(locks: leasehold_core::Client) -> Result<(), leasehold_core::Error> {
/// # async fn back_up(fence: u64) -> Result<(), std::io::Error> { Ok(()) }
/// let nightly = locks.job("nightly").schedule("0 2 * * *").zone("Europe/Berlin").at_most("2h");
/// nightly.run(async |run| back_up(run.fence()).await).await
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a job does nothing until it is run"]
pub struct Job {
    pub(super) lock: Lock,
    cron: Option<String>,
    zone: Option<String>,
    at_most: Option<Span>,
    at_least: Span,
    jitter: Span,
    catch_up: CatchUp,
    pub(super) finishes: bool,
    /// The store knows the job by the schedule of this one.
    pub(super) known: Arc<AtomicBool>,
}

impl Job {
    pub(crate) fn new(client: &Client, name: &str) -> Self {
        let (lock, none) = (Lock::exclusive(client, name), Span::from(Duration::ZERO));
        Self {
            lock,
            cron: None,
            zone: None,
            at_most: None,
            at_least: none.clone(),
            jitter: none,
            catch_up: CatchUp::default(),
            finishes: false,
            known: Arc::default(),
        }
    }

    /// When it runs: a cron expression of five fields, `minute hour day month weekday`, or of six with seconds before
    /// them; in UTC unless a [`zone`](Self::zone) is named.
    pub fn schedule(mut self, cron: &str) -> Self {
        self.known = Arc::default();
        self.cron = Some(cron.to_owned());
        self
    }

    /// The time zone of the schedule, such as `Europe/Berlin`. Where its clocks are changed, a slot at one minute of one hour comes
    /// once that day; with lists, ranges or steps of hours or minutes, what is skipped on the clock does not come, and what
    /// is repeated comes twice.
    pub fn zone(mut self, zone: &str) -> Self {
        self.known = Arc::default();
        self.zone = Some(zone.to_owned());
        self
    }

    /// How long a run may take: it is dropped then, and others may run the next slot. Every job says it, because one that
    /// hangs would otherwise keep the whole fleet from running it ever again.
    pub fn at_most(mut self, at_most: impl Into<Span>) -> Self {
        self.at_most = Some(at_most.into());
        self
    }

    /// How long a run counts though it is over sooner: nobody begins another within this time of its start.
    pub fn at_least(mut self, at_least: impl Into<Span>) -> Self {
        self.at_least = at_least.into();
        self
    }

    /// Begins up to this much after the slot, by chance: so that a hundred jobs at midnight are not all at midnight. Every
    /// process draws its own, and the first to begin takes the slot. Keep it shorter than the time between two slots: of
    /// those that come while it is waited for, [`catch_up`](Self::catch_up) says what becomes.
    pub fn jitter(mut self, jitter: impl Into<Span>) -> Self {
        self.jitter = jitter.into();
        self
    }

    /// What happens to slots that nobody could run in time. The latest is run, unless said otherwise.
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.catch_up = catch_up;
        self
    }

    /// The lease of the lock while it runs: how soon another may run it after this process has died.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// What the job is for, shown beside its lock.
    pub fn label(mut self, label: &str) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// Does not drop the work when the lock is lost or the time is over: the work watches [`Run::lost`] and ends by itself.
    pub fn finish_on_loss(mut self) -> Self {
        self.finishes = true;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Runs the job at its slots, whenever this process is the one, until the client is shut down. A store that fails is
    /// borne with; work that fails or panics is written down, and the next slot is run all the same.
    ///
    /// In a task of its own write `async move |run|`: the compiler takes a closure that borrows for one that cannot be sent.
    ///
    /// # Errors
    /// `Config` for what makes no sense, such as a schedule that is none; `Unsupported` by a store without cells; any other
    /// that asking again does not help against.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, gives the lock back in the background, and leaves a run that was under way to
    /// be written down as dead by whoever runs the next.
    pub async fn run<T, E, F>(&self, work: F) -> Result<()>
    where
        E: fmt::Display,
        F: AsyncFn(&Run) -> Result<T, E>,
    {
        let rules = self.rules()?;
        self.scheduled(&rules)?;
        turns::Fleet::new(self, rules)?.run(work).await.map_err(|error| self.about(error))
    }

    /// The same by work whose type is not known: what `#[scheduled]` uses. It can be sent to another task whatever the work
    /// borrows.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub async fn run_boxed(&self, work: &BoxedWork) -> Result<()> {
        let rules = self.rules()?;
        self.scheduled(&rules)?;
        turns::Fleet::new(self, rules)?.run_boxed(work).await.map_err(|error| self.about(error))
    }

    /// Waits for the next slot that falls to this process, runs it, and says what came of it: [`run`](Self::run) is this
    /// over and over. A panic of the work is written down and goes on.
    ///
    /// # Errors
    /// Those of the work; and, turned into the work's error type, those of [`run`](Self::run), of a store that cannot be
    /// reached, and the loss of the lock.
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub async fn run_next<T, E, F>(&self, work: F) -> Result<T, E>
    where
        E: From<Error> + fmt::Display,
        F: AsyncFnOnce(&Run) -> Result<T, E>,
    {
        let rules = self.rules()?;
        self.scheduled(&rules)?;
        let fleet = turns::Fleet::new(self, rules)?;
        let run = fleet.next().await.map_err(|error| self.about(error))?;
        fleet.perform(run, work).await.into_result(self.name())
    }

    /// Runs the job now if it is to be run now and nobody else does. With a schedule: if a slot is due that nobody has run.
    /// Without one: if the last run counts no more. Does not wait.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
    /// # use leasehold_core::{Client, Error, Turn, backend::Memory};
    /// # let locks = Client::new(Memory::new());
    /// let report = locks.job("report").at_most("10m").at_least("1h");
    /// let first = report.run_once(async |run| Ok::<_, Error>(run.fence())).await?;
    /// assert!(matches!(first, Turn::Ran(1)));
    /// let second = report.run_once(async |run| Ok::<_, Error>(run.fence())).await?;
    /// assert!(matches!(second, Turn::Resting(_)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`run_next`](Self::run_next). Not having to run is no error, see [`Turn`].
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub async fn run_once<T, E, F>(&self, work: F) -> Result<Turn<T>, E>
    where
        E: From<Error> + fmt::Display,
        F: AsyncFnOnce(&Run) -> Result<T, E>,
    {
        let rules = self.rules()?;
        let fleet = turns::Fleet::new(self, rules)?;
        let run = match fleet.now().await.map_err(|error| self.about(error))? {
            Turn::Ran(run) => run,
            Turn::Busy(busy) => return Ok(Turn::Busy(busy)),
            Turn::NotDue(next) => return Ok(Turn::NotDue(next)),
            Turn::Resting(until) => return Ok(Turn::Resting(until)),
            Turn::Paused(paused) => return Ok(Turn::Paused(paused)),
        };
        fleet.perform(run, work).await.into_result(self.name()).map(Turn::Ran)
    }

    /// What it runs by, checked.
    fn rules(&self) -> Result<Rules> {
        let wrong = |message: String| self.about(Error::config(Operation::Job, message));
        let length =
            |option: &str, span: &Span| span.read().map_err(|message| wrong(format!("{option}: {message}")));
        serves(self.lock.client()).map_err(|error| self.about(error))?;
        if self.zone.is_some() && self.cron.is_none() {
            return Err(wrong("a time zone without a schedule means nothing; name both or neither".into()));
        }
        let parse = |cron: &String| Schedule::parse(cron, self.zone.as_deref()).map_err(wrong);
        let schedule = self.cron.as_ref().map(parse).transpose()?;
        let (at_least, jitter) = (length("at_least", &self.at_least)?, length("jitter", &self.jitter)?);
        let Some(at_most) = &self.at_most else {
            return Err(wrong("nothing says how long a run may take; say it with at_most(\"1h\")".into()));
        };
        if length("at_most", at_most)? < MIN_MAX_HOLD {
            return Err(wrong(format!("at_most: {MIN_MAX_HOLD:?} is the least a run can be given")));
        }
        // What else would be found out at the first slot, which may be far off.
        self.held_lock().order(Life::Session, Patience::None)?;
        Ok(Rules { schedule, catch_up: self.catch_up, jitter, at_least })
    }

    fn scheduled(&self, rules: &Rules) -> Result<()> {
        if rules.schedule.is_some() {
            return Ok(());
        }
        let message = "this job has no schedule; give it one with schedule(\"0 2 * * *\"), or use run_once";
        Err(self.about(Error::config(Operation::Job, message)))
    }

    /// The lock that a run is under.
    pub(super) fn held_lock(&self) -> Lock {
        match &self.at_most {
            Some(at_most) => self.lock.clone().max_hold(at_most.clone()),
            None => self.lock.clone(),
        }
    }

    pub(super) fn about(&self, error: Error) -> Error {
        error.about(self.name())
    }
}
