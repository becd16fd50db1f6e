//! `cron`: a command that runs once per slot of a schedule across a fleet, on the same engine as jobs in programs.
//!
//! The child is watched over as `run` does it. A signal that comes while nothing runs ends the wait; one that comes while the
//! command runs is the command's, and we end when it has.

use std::{cell::Cell, ffi::OsString, time::Duration};

use clap::ValueEnum;
use leasehold::{CatchUp, Client, Job, Turn};
use leasehold_console::job_view::moment;
use nix::sys::signal::Signal;

use super::{block_on, on_behalf_of};
use crate::{
    args::{Asking, duration},
    config::Settings,
    exit::{Exit, Failure},
    nested,
    print::{self, Volume},
    supervise::{
        Ended, errand,
        hold::Hold,
        lost_pipe::LostPipe,
        signals::{Signals, unless_signalled, until_idle},
    },
    view::brief,
};

/// Run a command once per slot of a schedule, on one machine of many
///
/// Start the same line on every machine. For each slot one of them runs the command, whatever their clocks say: slots go by
/// the clock of the store. Without a schedule it runs once, now, unless another machine does or has done so within
/// --at-least: for use under cron or systemd timers.
///
/// The command runs as under `run`: it is stopped before the job could pass to another machine, and finds
/// LEASEHOLD_SLOT in its environment beside what `run` gives. `leasehold job` shows how it went.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's name
    name: String,

    /// When it runs: a cron expression of five fields, or of six with seconds first
    #[arg(long, value_name = "S")]
    schedule: Option<String>,

    /// The time zone of the schedule, such as Europe/Berlin [default: UTC]
    ///
    /// Where its clocks are changed, a slot at one minute of one hour comes once that day. With lists, ranges or steps of
    /// hours or minutes, what is skipped on the clock does not come, and what is repeated comes twice.
    #[arg(long, value_name = "Z", requires = "schedule")]
    zone: Option<String>,

    /// How long the command may take; it is stopped then
    #[arg(long, value_name = "DUR", value_parser = duration)]
    at_most: Duration,

    /// How long a run counts though it is over sooner: no machine begins another meanwhile
    #[arg(long, value_name = "DUR", value_parser = duration)]
    at_least: Option<Duration>,

    /// Begin up to this much after the slot, by chance
    #[arg(long, value_name = "DUR", value_parser = duration, requires = "schedule")]
    jitter: Option<Duration>,

    /// What happens to slots that no machine could run in time
    #[arg(long, value_name = "WHAT", default_value = "latest")]
    catch_up: Policy,

    /// The lease: how soon another machine may run it after this one has died [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    ttl: Option<Duration>,

    /// Time between TERM and KILL [default: 5s, at most a quarter of the lease]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    grace: Option<Duration>,

    /// What it is for, shown to whoever finds the lock busy
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// The exit code when there is no schedule and it was not to be run now
    #[arg(short = 'E', long, value_name = "N", default_value_t = 0)]
    conflict_exit_code: u8,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What happens to slots that were missed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// The latest is run, late
    Latest,
    /// They are run one after the other
    All,
    /// They are not run
    Skip,
}

impl From<Policy> for CatchUp {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Latest => Self::Latest,
            Policy::All => Self::All,
            Policy::Skip => Self::Skip,
        }
    }
}

/// Runs the job until it is told to end; without a schedule, once.
pub(crate) fn run(args: &Args, settings: &Settings, volume: Volume) -> Result<Exit, Failure> {
    // Before anything else is opened: see there why.
    let lost = Some(LostPipe::open()?);
    block_on(on_behalf_of(&args.command, settings, async |client, signals| {
        Cron { args, client, volume, signals, lost }.go().await
    }))
}

/// One `cron`, with what it needs along the way.
struct Cron<'a> {
    args: &'a Args,
    client: &'a Client,
    volume: Volume,
    signals: Signals,
    /// The pipe of the next child, made when the last one's is closed: so it keeps its low number.
    lost: Option<LostPipe>,
}

/// How one turn went.
enum Passed {
    /// The command ran and ended.
    Ran(Exit),
    /// It was not to be run: this is what the shell is told.
    Not(Exit),
    /// The command could not be started, and this signal came meanwhile.
    NotStarted(Failure, Option<Signal>),
    /// A signal came: this is what the shell is told.
    Signalled(Exit),
}

/// What comes after a turn.
enum Then {
    /// The next slot.
    Next,
    /// The next slot after a pause, because of this.
    Bear(Failure),
    /// The end.
    End(Result<Exit, Failure>),
}

impl Then {
    fn after(turn: Result<Passed, Failure>, is_scheduled: bool) -> Self {
        match turn {
            Ok(Passed::Ran(_)) if is_scheduled => Self::Next,
            Ok(Passed::NotStarted(_, Some(signal))) if is_scheduled => {
                Self::End(Ok(Exit::Signal(signal as i32)))
            }
            // A command that cannot be started, or a machine that has no process to spare, may be better at the next slot.
            Ok(Passed::NotStarted(failure, None)) if is_scheduled => Self::Bear(failure),
            // A store that is away comes back.
            Err(failure) if is_scheduled && !failure.exit.is_hopeless() => Self::Bear(failure),
            Ok(Passed::NotStarted(failure, _)) | Err(failure) => Self::End(Err(failure)),
            Ok(Passed::Ran(exit) | Passed::Not(exit) | Passed::Signalled(exit)) => Self::End(Ok(exit)),
        }
    }
}

impl Cron<'_> {
    async fn go(&mut self) -> Result<Exit, Failure> {
        let is_scheduled = self.args.schedule.is_some();
        let asking = Asking { nonblock: !is_scheduled, ..Asking::default() };
        nested::refuse(self.client, std::slice::from_ref(&self.args.name), &asking).await?;
        let job = self.job();
        loop {
            match Then::after(self.turn(&job).await, is_scheduled) {
                Then::Next => {}
                Then::End(end) => return end,
                Then::Bear(failure) => {
                    print::warn(&failure.message);
                    let pause = tokio::time::sleep(Duration::from_secs(1));
                    if let Err(signal) = unless_signalled(&mut self.signals, pause).await {
                        return Ok(Exit::Signal(signal as i32));
                    }
                }
            }
        }
    }

    fn job(&self) -> Job {
        let Args { name, schedule, zone, at_most, at_least, jitter, catch_up, ttl, label, .. } = self.args;
        let mut job = self.client.job(name).at_most(*at_most).catch_up((*catch_up).into()).finish_on_loss();
        if let Some(schedule) = schedule {
            job = job.schedule(schedule);
        }
        if let Some(zone) = zone {
            job = job.zone(zone);
        }
        if let Some(at_least) = *at_least {
            job = job.at_least(at_least);
        }
        if let Some(jitter) = *jitter {
            job = job.jitter(jitter);
        }
        if let Some(ttl) = *ttl {
            job = job.ttl(ttl);
        }
        label.iter().fold(job, |job, label| job.label(label))
    }

    /// Waits for a slot of ours and runs it; or runs it now, if it has no schedule.
    async fn turn(&mut self, job: &Job) -> Result<Passed, Failure> {
        let lost = match self.lost.take().map_or_else(LostPipe::open, Ok) {
            Ok(lost) => lost,
            Err(failure) => return Ok(Passed::NotStarted(failure, None)),
        };
        let (is_running, mut ran) = (Cell::new(false), None);
        let (args, client) = (self.args, self.client);
        let work = async |run: &leasehold::Run| {
            // From here on there is something to be brought to its end, and to be written down.
            is_running.set(true);
            let ended = perform(args, client, run, lost).await;
            let Ended { end, leash } = ended.map_err(|failure| errand::naming(failure, &args.command))?;
            let (exit, said) = errand::conclude(&end, || {
                format!("--at-most of {} is over, or renewing failed", brief(args.at_most))
            });
            ran = Some((exit, leash));
            said.map_or(Ok(()), |said| Err(Failure::new(exit, said)))
        };
        // Boxed: a supervised run within a job is a large future.
        let taken = Box::pin(async {
            match args.schedule {
                Some(_) => job.run_next(work).await.map(Turn::Ran),
                None => job.run_once(work).await,
            }
        });
        let (turn, signal) = until_idle(&mut self.signals, &is_running, taken).await;
        self.lost = LostPipe::open().ok();
        if let Some((exit, leash)) = ran {
            leash.end();
            if let Some(Err(failure)) = turn {
                print::note(self.volume, Volume::Normal, &format!("{:?}: {failure}", args.name));
            }
            return Ok(signal.map_or(Passed::Ran(exit), |_| Passed::Signalled(exit)));
        }
        match turn {
            None => Ok(Passed::Signalled(Exit::Signal(signal.map_or(0, |signal| signal as i32)))),
            Some(Err(failure)) if is_running.get() => Ok(Passed::NotStarted(failure, signal)),
            Some(turn) => Ok(self.not_run(turn?)),
        }
    }

    /// Says why a turn came to nothing.
    fn not_run(&self, turn: Turn<()>) -> Passed {
        let (why, volume) = match turn {
            Turn::Ran(()) => return Passed::Ran(Exit::Success),
            Turn::Busy(busy) => (busy.to_string(), Volume::Verbose),
            Turn::Resting(until) => (format!("the last run counts until {}", moment(until)), Volume::Verbose),
            Turn::Paused(paused) => {
                let why = format!("paused by {} since {}: {}", paused.by, moment(paused.since), paused.why);
                (why, Volume::Normal)
            }
            _ => ("no slot is due".to_owned(), Volume::Verbose),
        };
        print::note(self.volume, volume, &format!("{:?} is not run: {why}", self.args.name));
        Passed::Not(Exit::Busy(self.args.conflict_exit_code))
    }
}

/// Runs the command for this slot.
async fn perform(
    args: &Args,
    client: &Client,
    run: &leasehold::Run,
    lost: LostPipe,
) -> Result<Ended, Failure> {
    let hold = Hold::lent(run.guard());
    let mut command = errand::prepared(&args.command, client, &hold);
    command.env("LEASEHOLD_SLOT", run.slot().to_string());
    errand::run(command, run.guard(), args.grace, client, lost).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_process() -> Failure {
        Failure::internal("cannot start the command", "resource temporarily unavailable")
    }

    #[test]
    fn a_command_that_cannot_be_started_once_is_tried_at_the_next_slot() {
        let bear = Then::after(Ok(Passed::NotStarted(no_process(), None)), true);
        assert!(matches!(bear, Then::Bear(failure) if failure.exit == Exit::Internal));
        let once = Then::after(Ok(Passed::NotStarted(no_process(), None)), false);
        assert!(matches!(once, Then::End(Err(failure)) if failure.exit == Exit::Internal));
        let hopeless = Then::after(Err(Failure::new(Exit::Denied, "no")), true);
        assert!(matches!(hopeless, Then::End(Err(failure)) if failure.exit == Exit::Denied));
    }

    #[test]
    fn a_signal_that_comes_while_the_command_fails_to_start_ends_it() {
        let signalled = Passed::NotStarted(no_process(), Some(Signal::SIGTERM));
        assert!(matches!(Then::after(Ok(signalled), true), Then::End(Ok(Exit::Signal(15)))));
    }
}
