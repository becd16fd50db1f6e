//! `elect`: a command that runs on one machine of many, for as long as that one leads; and who leads, as it changes.
//!
//! The child is watched over as `run` does it. A signal that comes while we are a candidate ends that; one that comes while
//! the command runs is the command's, and we end when it has.

use std::{cell::Cell, ffi::OsString, time::Duration};

use jiff::Timestamp;
use leasehold::{Client, Election, ErrorKind, Leader, Leadership, Who, time::Clock};
use leasehold_console::view::time;
use serde_json::{Value, json};

use super::{block_on, close, on_behalf_of};
use crate::{
    args::{Asking, Output, Talk, duration},
    config::Settings,
    exit::{Exit, Failure},
    nested,
    print::{self, Volume},
    supervise::{
        Ended, errand,
        hold::Hold,
        lost_pipe::LostPipe,
        signals::{ENDING, Signals, unless_signalled, until_idle},
    },
    text,
    view::brief,
};

/// Run a command on one machine of many, while that one leads
///
/// Start the same line on every machine. One of them leads and runs the command; the others wait, and when it resigns, dies
/// or cannot renew its lease, the next one leads. When the command ends we resign and end with its code; with --again we are
/// a candidate once more.
///
/// The command runs as under `run`: it is stopped before another machine can lead, and finds LEASEHOLD_NAME,
/// LEASEHOLD_FENCE and the others in its environment. Pass the fence along with what the command writes.
///
/// With --observe nothing is run: each leader is told on a line of its own, beginning with the one of this moment, until
/// it is interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The election's name
    name: String,

    /// What the leader says of itself, for those who observe: its address, say
    #[arg(long, value_name = "V", default_value = "", hide_default_value = true)]
    value: String,

    /// Be a candidate again when the command has ended or the lead was lost
    #[arg(long)]
    again: bool,

    /// Wait this long to lead, then give up [default: for ever]
    #[arg(short, long, value_name = "DUR", value_parser = duration, conflicts_with_all = ["nonblock", "again"])]
    wait: Option<Duration>,

    /// Do not wait at all
    #[arg(short, long, conflicts_with = "again")]
    nonblock: bool,

    /// The lease: how soon another may lead after this one has died [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    ttl: Option<Duration>,

    /// Time between TERM and KILL [default: 5s, at most a quarter of the lease]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    grace: Option<Duration>,

    /// What it is for, shown to whoever finds the lock busy
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// The exit code when somebody else leads
    #[arg(short = 'E', long, value_name = "N", default_value_t = Exit::BUSY)]
    conflict_exit_code: u8,

    /// Tell who leads instead, as it changes
    #[arg(long, conflicts_with_all = ["value", "again", "wait", "nonblock", "ttl", "grace", "label", "command"])]
    observe: bool,

    /// How often to look, with --observe
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "1s", requires = "observe")]
    every: Duration,

    /// The command and its arguments
    #[arg(last = true, required_unless_present = "observe", value_name = "CMD")]
    command: Vec<OsString>,
}

const AFTER: &str = "\
Examples:
  leasehold elect scheduler --value $(hostname):8080 --again -- ./scheduler
  leasehold elect scheduler --observe -o json | jq .leader.value";

/// How long to leave everything alone before being a candidate again.
const REST: Duration = Duration::from_secs(1);

/// Leads and runs the command, or tells who leads.
pub(crate) fn run(args: &Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    if args.observe {
        return block_on(watch(args, settings, talk.output));
    }
    // Before anything else is opened: see there why.
    let (volume, lost) = (talk.volume(), Some(LostPipe::open()?));
    block_on(on_behalf_of(&args.command, settings, async |client, signals| {
        Candidate { args, client, volume, signals, lost }.go().await
    }))
}

/// One `elect`, with what it needs along the way.
struct Candidate<'a> {
    args: &'a Args,
    client: &'a Client,
    volume: Volume,
    signals: Signals,
    /// The pipe of the next child, made when the last one's is closed: so it keeps its low number.
    lost: Option<LostPipe>,
}

/// How one term went.
enum Term {
    /// The command ran and ended.
    Over(Exit),
    /// A signal came: this is what the shell is told.
    Signalled(Exit),
}

impl Candidate<'_> {
    async fn go(&mut self) -> Result<Exit, Failure> {
        let asking = Asking { nonblock: self.args.nonblock, ..Asking::default() };
        nested::refuse(self.client, std::slice::from_ref(&self.args.name), &asking).await?;
        let election = self.election();
        loop {
            match self.term(&election).await {
                Ok(Term::Over(_)) if self.args.again => {}
                Ok(Term::Over(exit) | Term::Signalled(exit)) => return Ok(exit),
                // A store that is away comes back; a command that cannot be started may be there next time.
                Err(failure) if self.args.again && !failure.exit.is_hopeless() => {
                    print::warn(&failure.message);
                }
                Err(failure) => return Err(failure),
            }
            // Others get their turn, and a command that ends at once does not make the fleet spin.
            if let Err(signal) = unless_signalled(&mut self.signals, tokio::time::sleep(REST)).await {
                return Ok(Exit::Signal(signal as i32));
            }
        }
    }

    fn election(&self) -> Election {
        let Args { name, wait, nonblock, ttl, label, .. } = self.args;
        let mut election = self.client.election(name).asked_at("the command line".into());
        if let Some(wait) = wait.or(nonblock.then_some(Duration::ZERO)) {
            election = election.wait(wait);
        }
        if let Some(ttl) = *ttl {
            election = election.ttl(ttl);
        }
        label.iter().fold(election, |election, label| election.label(label))
    }

    /// Waits until it leads, runs the command, resigns.
    async fn term(&mut self, election: &Election) -> Result<Term, Failure> {
        let lost = self.lost.take().map_or_else(LostPipe::open, Ok)?;
        let is_running = Cell::new(false);
        let (args, client, volume) = (self.args, self.client, self.volume);
        let led = async {
            let leadership = campaign(args, volume, election).await?;
            // From here on there is something to be brought to its end.
            is_running.set(true);
            lead(args, client, volume, leadership, lost).await
        };
        let (led, signal) = until_idle(&mut self.signals, &is_running, led).await;
        self.lost = LostPipe::open().ok();
        match led {
            None => Ok(Term::Signalled(Exit::Signal(signal.map_or(0, |signal| signal as i32)))),
            Some(exit) if signal.is_some() => exit.map(Term::Signalled),
            Some(exit) => exit.map(Term::Over),
        }
    }
}

async fn campaign(args: &Args, volume: Volume, election: &Election) -> Result<Leadership, Failure> {
    let (clock, name) = (Clock::boot(), &args.name);
    let begun = clock.now();
    let leadership = election.campaign(&args.value).await.map_err(|error| match error.busy() {
        Some(busy) if error.kind() == ErrorKind::Busy => {
            let exit = Exit::Busy(args.conflict_exit_code);
            // It is no error: who wants to hear of it is told here.
            print::note(volume, Volume::Normal, &format!("{name:?} is led by another: {busy}"));
            Failure::new(exit, "")
        }
        _ => error.into(),
    })?;
    let (waited, fence) = (brief(begun.until(clock.now())), leadership.fence());
    print::note(volume, Volume::Verbose, &format!("leads {name:?} after {waited}, fence {fence}"));
    Ok(leadership)
}

/// Runs the command while this one leads.
async fn lead(
    args: &Args,
    client: &Client,
    volume: Volume,
    leadership: Leadership,
    lost: LostPipe,
) -> Result<Exit, Failure> {
    let command = errand::prepared(&args.command, client, &Hold::lent(leadership.guard()));
    let ran = errand::run(command, leadership.guard(), args.grace, client, lost).await;
    let resigned = leadership.resign().await;
    let Ended { end, leash } = ran.map_err(|failure| errand::naming(failure, &args.command))?;
    leash.end();
    let (exit, said) = errand::conclude(&end, || "lost: the lease could not be renewed in time".to_owned());
    match said {
        Some(said) if end.stopped.is_some() => print::warn(&said),
        Some(said) => print::note(volume, Volume::Verbose, &said),
        None => {}
    }
    let Err(error) = resigned else { return Ok(exit) };
    if error.loss().is_none() {
        print::warn(&format!("{error}; the lead ends with its lease"));
    }
    Ok(errand::told_late(&end, &error).map_or(exit, |told| {
        print::warn(&format!("{told}; the command ended by itself, and may have overlapped with another"));
        Exit::of_loss(told)
    }))
}

/// Tells who leads until somebody wants us to stop.
async fn watch(args: &Args, settings: &Settings, output: Output) -> Result<Exit, Failure> {
    let mut signals = Signals::catch(&ENDING)?;
    let client = settings.connect().await?;
    let told = unless_signalled(&mut signals, tell(args, &client, output)).await;
    close(&client).await;
    told.unwrap_or(Ok(Exit::Success))
}

/// Ends only with a failure that stays one; a reader that went away is one without a word.
async fn tell(args: &Args, client: &Client, output: Output) -> Result<Exit, Failure> {
    let mut leaders = client.election(&args.name).every(args.every).observe();
    let (mut first, mut cut_off) = (true, false);
    loop {
        let leader = match leaders.next().await.map_err(Failure::from) {
            Ok(leader) => leader,
            Err(failure) if first || failure.exit.is_hopeless() => return Err(failure),
            Err(failure) => {
                if !std::mem::replace(&mut cut_off, true) {
                    print::warn(&format!("cannot look, and goes on trying: {failure}"));
                }
                continue;
            }
        };
        (first, cut_off) = (false, false);
        let now = time(Timestamp::now());
        let line = match output {
            Output::Json => text::clean_json(
                &json!({ "time": now, "leader": leader.as_ref().map(described) }).to_string(),
            )
            .into_owned(),
            Output::Table => format!("{now}  {}", leader.as_ref().map_or("nobody leads".into(), sentence)),
        };
        // What others wrote is made harmless before it is laid out.
        print::data(&format!("{}\n", text::clean(&line)))?;
    }
}

fn described(leader: &Leader) -> Value {
    let Who { program, pid, host, user, .. } = &*leader.who;
    json!({
        "id": leader.id, "fence": leader.fence, "value": leader.value.as_ref().map(|_| leader.text()),
        "program": program, "pid": pid, "host": host, "user": user,
    })
}

/// `scheduler 4711@web-3 leads, fence 7, "10.0.0.7:8080"`
fn sentence(leader: &Leader) -> String {
    let Who { program, pid, host, .. } = &*leader.who;
    let value = match leader.text() {
        text if text.is_empty() => String::new(),
        text => format!(", {text:?}"),
    };
    format!("{program} {pid}@{host} leads, fence {}{value}", leader.fence)
}
