//! The child and everything that watches over it, from fork to the last process of its group.
//!
//! One loop hears signals, renewals, the loss of the lock, the end of the time allowed and the end of the child. It
//! never stops the child itself: the dead-man does, in every case, so there is one way in which a child is
//! stopped. Only if the dead-man does not do its work does the loop fall back on its own signals.
//!
//! The child stays unreaped until the dead-man is done with its group, so its number cannot become another's.

pub(crate) mod child;
pub(crate) mod errand;
pub(crate) mod hold;
pub(crate) mod lost_pipe;
pub(crate) mod signals;
pub(crate) mod terminal;
mod watch;

use std::{
    io,
    os::fd::OwnedFd,
    process::{Command, ExitStatus},
    time::Duration,
};

use leasehold::{Client, backend::Loss};

use self::{
    child::Gear,
    hold::Hold,
    lost_pipe::LostPipe,
    signals::{Signals, WITH_CHILD},
    terminal::Terminal,
    watch::Watch,
};
use crate::{
    dead_man::{
        Verdict,
        leash::{Leash, Terms},
    },
    exit::{Exit, Failure},
};

/// What is run, and how it is watched.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) command: Command,
    pub(crate) terms: Terms,
    pub(crate) max_run: Option<Duration>,
}

/// How it went, and a dead-man that has been told so.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    pub(crate) leash: Leash,
}

/// How it went.
#[derive(Debug)]
pub(crate) struct End {
    /// How the child ended.
    pub(crate) status: ExitStatus,
    /// Why it was stopped, if it was.
    pub(crate) stopped: Option<Stop>,
    /// How the lock was lost while the child ran, if it was.
    pub(crate) loss: Option<Loss>,
    /// The dead-man has seen that nothing ran any more before the lease ended.
    pub(crate) is_in_time: bool,
}

/// Why a child was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The lock was lost.
    Lost(Loss),
    /// The lease was about to run out.
    DeadlineNear,
    /// It ran for longer than it may.
    TimeUp,
    /// There was no dead-man to be had any more.
    Unwatched,
}

/// Runs the command and stays until it has ended.
///
/// # Cancel safety
/// Not to be dropped: the child would run on unwatched but for its dead-man, which stops it.
pub(crate) async fn run(
    plan: Plan,
    client: &Client,
    hold: &Hold<'_>,
    lost: LostPipe,
    mut signals: Signals,
) -> Result<Ended, Failure> {
    signals.add(&WITH_CHILD)?;
    let Plan { command, terms, max_run } = plan;
    let (read, write) = lost.split();
    let keep = read.try_clone().map_err(|error| Failure::internal("cannot copy a descriptor", error))?;
    let leash = Leash::start(terms, hold.deadline(), None, client.backend().session(), write);
    let leash = leash.map_err(|error| {
        Failure::internal("cannot start the process that watches over the command, so it is not run", error)
    })?;
    let terminal = Terminal::open();
    let gear = gear(&leash, read, terminal.as_ref());
    let spawned = gear.and_then(|gear| child::spawn(command, gear));
    let child = match spawned {
        Ok(child) => child,
        Err(error) => return Err(not_started(&error, leash, terminal)),
    };
    let watch = Watch::new(child, leash, hold, client, keep, terminal);
    Ok(watch.until_the_end(max_run, signals).await)
}

fn gear(leash: &Leash, lost: OwnedFd, terminal: Option<&Terminal>) -> io::Result<Gear> {
    let terminal = terminal.filter(|terminal| terminal.is_wanted()).map(Terminal::handle).transpose()?;
    Ok(Gear { lost, voice: leash.voice()?, terminal })
}

/// The command did not start: the dead-man is sent home, and the reason becomes an exit code as in shells.
fn not_started(error: &io::Error, mut leash: Leash, terminal: Option<Terminal>) -> Failure {
    if let Some(terminal) = terminal {
        terminal.reclaim();
    }
    let ended = leash.ended();
    leash.end();
    match error.kind() {
        io::ErrorKind::BrokenPipe if ended == Some(Verdict::Missed) => {
            Failure::new(Exit::Lost, "lost: the lease ran out before the command could be started")
        }
        io::ErrorKind::BrokenPipe | io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            Failure::internal("cannot start the command", error)
        }
        io::ErrorKind::NotFound => Failure::new(Exit::NotFound, "command not found"),
        _ => Failure::new(Exit::NotExecutable, format!("the command cannot be run: {error}")),
    }
}
