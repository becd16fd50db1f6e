//! What `run`, `cron` and `elect` have to say about the command they start: its name, its environment, its grace; and what
//! came of it.

use std::{ffi::OsString, path::PathBuf, process::Command, time::Duration};

use leasehold::{Client, Guard, backend::Loss};

use super::{
    End, Ended, Plan, Stop,
    hold::Hold,
    lost_pipe::LostPipe,
    signals::{ENDING, Signals},
};
use crate::{
    dead_man::{leash::Terms, message::OnLost},
    exit::{Exit, Failure},
    nested,
    status::Report,
};

/// The grace if none is asked for and the lease is long enough.
const GRACE: Duration = Duration::from_secs(5);

/// Time between TERM and KILL: never so long that there is none to renew.
pub(crate) fn grace(asked: Option<Duration>, lease: Duration) -> Duration {
    asked.unwrap_or(GRACE.min(lease / 4)).min(lease / 3)
}

/// What others see as the program that holds the lock.
pub(crate) fn program(command: &[OsString]) -> String {
    let path = command.first().map(PathBuf::from).unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The command with its environment.
pub(crate) fn prepared(command: &[OsString], client: &Client, hold: &Hold<'_>) -> Command {
    let (program, arguments) =
        command.split_first().expect("the command line has a command, or it was refused");
    let listed =
        |text: &dyn Fn(&leasehold::Guard) -> String| hold.guards().map(text).collect::<Vec<_>>().join(",");
    let mut prepared = Command::new(program);
    prepared
        .args(arguments)
        .env("LEASEHOLD_NAME", listed(&|guard| guard.name().to_owned()))
        .env("LEASEHOLD_FENCE", listed(&|guard| guard.fence().to_string()))
        .env("LEASEHOLD_ID", listed(&|guard| guard.id().to_string()))
        .env("LEASEHOLD_OWNER", client.who().client.to_string())
        .env(nested::VARIABLE, nested::with(hold));
    prepared
}

/// A failure to start the command, with its name.
pub(crate) fn naming(failure: Failure, command: &[OsString]) -> Failure {
    match failure.exit {
        Exit::NotFound | Exit::NotExecutable => {
            let command = command.first().map(|command| command.to_string_lossy());
            Failure::new(failure.exit, format!("{}: {}", command.unwrap_or_default(), failure.message))
        }
        _ => failure,
    }
}

/// Runs a command under a lock that is lent to it, with signals of its own: whoever waits for it hears them too.
///
/// # Cancel safety
/// As for [`supervise::run`](super::run).
pub(crate) async fn run(
    command: Command,
    guard: &Guard,
    asked: Option<Duration>,
    client: &Client,
    lost: LostPipe,
) -> Result<Ended, Failure> {
    let signals = Signals::catch(&ENDING)?;
    let grace = grace(asked, guard.remaining());
    let terms = Terms { grace, on_lost: OnLost::Kill, id: Some(guard.id()) };
    super::run(Plan { command, terms, max_run: None }, client, &Hold::lent(guard), lost, signals).await
}

/// What the shell is told, and what there is to say if it did not go well; `over` says why the time was.
pub(crate) fn conclude(end: &End, over: impl FnOnce() -> String) -> (Exit, Option<String>) {
    let own = Report::exit_of(end.status);
    match &end.stopped {
        Some(Stop::Lost(loss)) => (
            Exit::of_loss(loss),
            Some(format!("{loss}; the command was stopped, and may have overlapped with another")),
        ),
        Some(Stop::DeadlineNear | Stop::TimeUp) => {
            (Exit::Lost, Some(format!("{}; the command was stopped", over())))
        }
        Some(Stop::Unwatched) => {
            let said = "the process that watches over the command could not be kept; the command was stopped";
            (Exit::Internal, Some(said.to_owned()))
        }
        None => match own {
            Exit::Child(0) => (own, None),
            Exit::Child(code) => (own, Some(format!("the command ended with code {code}"))),
            _ => (own, Some(format!("the command was ended by signal {}", own.code().saturating_sub(128)))),
        },
    }
}

/// What only the release told, and a renewal would have: that the lock was gone while the child still ran.
pub(crate) fn told_late<'e>(end: &End, error: &'e leasehold::Error) -> Option<&'e Loss> {
    error.loss().filter(|loss| match loss {
        // The child ended in time, or it was told already.
        Loss::Expired | Loss::MaxHold => false,
        Loss::Gone if end.is_in_time => false,
        _ => end.stopped.is_none() && end.loss.is_none(),
    })
}
