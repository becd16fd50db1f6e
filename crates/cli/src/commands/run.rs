//! `run`: holds a lock while a command runs, and never lets the command outlive the lock.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use leasehold::{Client, Error, ErrorKind, time::Clock};
use nix::sys::signal::Signal;

use super::{GOODBYE, block_on, on_behalf_of};
use crate::{
    args::{Asking, duration},
    config::Settings,
    dead_man::{leash::Terms, message::OnLost},
    exit::{Exit, Failure},
    nested,
    print::{self, Volume},
    status::Report,
    supervise::{
        self, End, Ended, Plan, Stop, errand,
        hold::Hold,
        lost_pipe::LostPipe,
        signals::{Signals, unless_signalled},
    },
    view::brief,
};

/// Hold a lock while a command runs
///
/// The command runs in a process group of its own, with the terminal if there is one. It is stopped, TERM and then
/// KILL, before the lock can pass to somebody else; also if leasehold itself is killed. Signals are passed on to
/// it. It finds LEASEHOLD_NAME, LEASEHOLD_FENCE, LEASEHOLD_ID and LEASEHOLD_OWNER in its environment, and in
/// LEASEHOLD_LOST_FD the number of a descriptor that reaches its end when the lock is lost.
///
/// The lock is released when the command itself ends. Processes that it leaves behind in the background, daemons
/// among them, run on without the lock: wait for them in the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lock's name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,

    /// Hold all of these instead of NAME, all or nothing; give it once for each name
    #[arg(long, value_name = "NAME", conflicts_with = "permits")]
    all: Vec<String>,

    #[command(flatten)]
    asking: Asking,

    /// The exit code when somebody else holds the lock
    #[arg(short = 'E', long, value_name = "N", default_value_t = Exit::BUSY)]
    conflict_exit_code: u8,

    /// Do not renew the lease: the command is stopped when the first one ends
    #[arg(long)]
    no_renew: bool,

    /// Hold the lock for at most this long; the command is stopped before (exit 76)
    #[arg(long, value_name = "DUR", value_parser = duration)]
    max_hold: Option<Duration>,

    /// Stop the command after this long (exit 124)
    #[arg(long, value_name = "DUR", value_parser = duration)]
    max_run: Option<Duration>,

    /// What happens to the command when the lock is lost
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    on_lost: OnLost,

    /// Time between TERM and KILL, at most a third of the lease [default: 5s, at most a quarter of the lease]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    grace: Option<Duration>,

    /// Write one line of JSON there that says how it went
    #[arg(long, value_name = "F")]
    status_file: Option<PathBuf>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Holds the lock, runs the command, says how it went.
pub(crate) fn run(args: &Args, settings: &Settings, volume: Volume) -> Result<Exit, Failure> {
    let mut report = Report::new(args.names());
    // Before anything else is opened: see there why.
    let lost = LostPipe::open()?;
    let run = Run { args, settings, volume, report: &mut report, clock: Clock::boot() };
    let ended = block_on(run.go(lost));
    if let Some(path) = &args.status_file {
        let written = report.write(path, &ended);
        if let Err(error) = written {
            print::warn(&format!("cannot write {}: {error}", path.display()));
        }
    }
    ended
}

impl Args {
    /// What is to be held, in the order given.
    fn names(&self) -> Vec<String> {
        self.name.iter().chain(&self.all).cloned().collect()
    }

    /// A grace that leaves no time to renew makes no sense.
    fn check_grace(&self, lease: Duration) -> Result<(), Failure> {
        match self.grace {
            Some(grace) if grace > lease / 3 => Err(Failure::usage(format!(
                "--grace {} is more than a third of the lease; there would be no time to renew",
                brief(grace)
            ))),
            _ => Ok(()),
        }
    }
}

/// One `run`, with what it needs along the way.
struct Run<'a> {
    args: &'a Args,
    settings: &'a Settings,
    volume: Volume,
    report: &'a mut Report,
    clock: Clock,
}

impl Run<'_> {
    async fn go(mut self, lost: LostPipe) -> Result<Exit, Failure> {
        if let Some(ttl) = self.args.asking.ttl {
            self.args.check_grace(ttl)?;
        }
        let (args, settings) = (self.args, self.settings);
        on_behalf_of(&args.command, settings, async |client, signals| {
            self.hold_and_run(client, lost, signals).await
        })
        .await
    }

    async fn hold_and_run(
        &mut self,
        client: &Client,
        lost: LostPipe,
        mut signals: Signals,
    ) -> Result<Exit, Failure> {
        let begun = self.clock.now();
        let acquired = unless_signalled(&mut signals, self.acquire(client)).await;
        let waited = begun.until(self.clock.now());
        self.report.waited(waited);
        let hold = match acquired {
            Err(signal) => return Ok(self.interrupted(client, signal, waited).await),
            Ok(Err(failure)) => return Err(failure),
            Ok(Ok(Err(busy))) => return Ok(self.busy(&busy, waited)),
            Ok(Ok(Ok(hold))) => hold,
        };
        self.report.held(&hold);
        self.say_acquired(&hold, waited);
        let ran = match self.plan(client, &hold) {
            Ok(plan) => supervise::run(plan, client, &hold, lost, signals).await,
            Err(failure) => Err(failure),
        };
        self.report.held_for(begun.until(self.clock.now()).saturating_sub(waited));
        let released = hold.release().await;
        let Ended { end, leash } = ran.map_err(|failure| errand::naming(failure, &self.args.command))?;
        leash.end();
        Ok(self.conclude(&end, released))
    }

    /// All the locks that were asked for, or who has one of them.
    async fn acquire(&self, client: &Client) -> Result<Result<Hold<'static>, Error>, Failure> {
        let Args { asking, no_renew, max_hold, .. } = self.args;
        let names = self.args.names();
        nested::refuse(client, &names, asking).await?;
        let mut set = client.set();
        for name in &names {
            let mut lock = asking.lock(client, name);
            if *no_renew {
                lock = lock.no_renew();
            }
            if let Some(max_hold) = *max_hold {
                lock = lock.max_hold(max_hold);
            }
            set = set.with(lock);
        }
        if let Some(wait) = asking.patience() {
            set = set.wait(wait);
        }
        match set.acquire().await {
            Ok(guard) => Ok(Ok(Hold::new(names, guard))),
            Err(error) if error.kind() == ErrorKind::Busy => Ok(Err(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn busy(&mut self, error: &Error, waited: Duration) -> Exit {
        let name = error.name().unwrap_or_default();
        let holders = error.busy().map(ToString::to_string).unwrap_or_default();
        let patience = match self.args.asking.patience() {
            Some(Duration::ZERO) => "did not wait".to_owned(),
            _ => format!("gave up after {}", brief(waited)),
        };
        self.report.busy(&holders);
        print::note(self.volume, Volume::Normal, &format!("{name:?} is busy: {holders}; {patience}"));
        Exit::Busy(self.args.conflict_exit_code)
    }

    /// Leaves the line before it leaves the program, so that nobody waits behind a ghost.
    async fn interrupted(&mut self, client: &Client, signal: Signal, waited: Duration) -> Exit {
        let _ = client.shutdown(GOODBYE).await;
        let note = format!("stopped waiting after {}: {signal}", brief(waited));
        print::note(self.volume, Volume::Normal, &note);
        Exit::Signal(signal as i32)
    }

    fn say_acquired(&self, hold: &Hold<'_>, waited: Duration) {
        for guard in hold.guards() {
            let (name, fence, waited) = (guard.name(), guard.fence(), brief(waited));
            let note = format!("{name:?} acquired after {waited}, fence {fence}");
            print::note(self.volume, Volume::Verbose, &note);
        }
    }

    fn plan(&self, client: &Client, hold: &Hold<'_>) -> Result<Plan, Failure> {
        let Args { asking, max_hold, grace, on_lost, max_run, command, .. } = self.args;
        let lease = self.clock.now().until(hold.deadline());
        if asking.ttl.is_none() && max_hold.is_none() {
            // The lease comes from the store's settings. What is left of it is a little less than was asked for.
            self.args.check_grace(lease + lease / 32)?;
        }
        let grace = errand::grace(*grace, lease);
        let command = errand::prepared(command, client, hold);
        let id = hold.guards().next().map(leasehold::Guard::id);
        Ok(Plan { command, terms: Terms { grace, on_lost: *on_lost, id }, max_run: *max_run })
    }

    /// From how the child, its lock and its release went to what the shell is told.
    fn conclude(&mut self, end: &End, released: leasehold::Result<()>) -> Exit {
        self.report.child(end.status);
        let own = Report::exit_of(end.status);
        match &end.stopped {
            Some(Stop::Lost(loss)) => {
                self.report.loss(loss);
                print::warn(&format!(
                    "{loss}; the command was stopped, and may have overlapped with another holder"
                ));
                Exit::of_loss(loss)
            }
            Some(Stop::DeadlineNear) => {
                let why = self.why_deadline();
                self.report.lost(&why);
                print::warn(&format!("{why}; the command was stopped before the lock could pass on"));
                Exit::Lost
            }
            Some(Stop::TimeUp) => {
                print::note(self.volume, Volume::Normal, "--max-run is over; the command was stopped");
                Exit::MaxRun
            }
            Some(Stop::Unwatched) => {
                print::warn(
                    "the process that watches over the command could not be kept; the command was stopped",
                );
                Exit::Internal
            }
            None => {
                end.loss.iter().for_each(|loss| self.report.loss(loss));
                self.after_release(own, end, released)
            }
        }
    }

    fn after_release(&mut self, own: Exit, end: &End, released: leasehold::Result<()>) -> Exit {
        let Err(error) = released else { return own };
        if let Some(loss) = errand::told_late(end, &error) {
            self.report.loss(loss);
            print::warn(&format!(
                "{loss}; the command ended by itself, and may have overlapped with another holder"
            ));
            return if self.args.on_lost == OnLost::Warn { own } else { Exit::of_loss(loss) };
        }
        if error.loss().is_none() {
            print::warn(&format!("{error}; the lock ends with its lease"));
        }
        own
    }

    fn why_deadline(&self) -> String {
        match (self.args.max_hold, self.args.no_renew) {
            (Some(max_hold), _) => {
                format!("lost: --max-hold of {} is reached, or renewing failed", brief(max_hold))
            }
            (None, true) => "lost: the lease ends, and --no-renew was given".to_owned(),
            (None, false) => "lost: the lease could not be renewed in time".to_owned(),
        }
    }
}
