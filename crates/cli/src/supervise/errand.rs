//! What `run` and `cron` have to say about the command they start: its name, its environment, its grace.

use std::{ffi::OsString, path::PathBuf, process::Command, time::Duration};

use leasehold::Client;

use super::hold::Hold;
use crate::{
    exit::{Exit, Failure},
    nested,
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
