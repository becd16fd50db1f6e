//! The commands, one file each.

pub(crate) mod acquire;
pub(crate) mod bench;
pub(crate) mod break_hold;
pub(crate) mod completions;
pub(crate) mod cron;
pub(crate) mod doctor;
pub(crate) mod elect;
pub(crate) mod job;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod watch;

use std::{ffi::OsString, io::Read, time::Duration};

use leasehold::{Client, Ticket, Who};

use crate::{
    args::{Cli, Command},
    config::Settings,
    exit::{Exit, Failure},
    supervise::{
        errand,
        signals::{ENDING, Signals, unless_signalled},
    },
};

/// How long the end of a command may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// Does what the command line says.
pub(crate) fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let Cli { store, talk, command } = cli;
    match command {
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Run(args) => run::run(&args, &store.resolve()?, talk.volume()),
        Command::Cron(args) => cron::run(&args, &store.resolve()?, talk.volume()),
        Command::Elect(args) => elect::run(&args, &store.resolve()?, talk),
        Command::Job(args) => block_on(job::run(args, &store.resolve()?, talk)),
        Command::Acquire(args) => block_on(acquire::run(args, &store.resolve()?, talk.volume())),
        Command::Renew(args) => block_on(renew::run(args, &store.resolve()?, talk)),
        Command::Release(args) => block_on(release::run(args, &store.resolve()?)),
        Command::Ls(args) => block_on(ls::run(args, &store.resolve()?, talk)),
        Command::Watch(args) => block_on(watch::run(args, &store.resolve()?, talk)),
        Command::Show(args) => block_on(show::run(args, &store.resolve()?, talk)),
        Command::Break(args) => block_on(break_hold::run(args, &store.resolve()?, talk.volume())),
        Command::Serve(args) => serve::run(&args, &store.resolve()?, talk.volume()),
        Command::Doctor(args) => block_on(doctor::run(args, &store.resolve()?, talk)),
        Command::Bench(args) => bench::run(&args, &store.resolve()?, talk),
    }
}

/// Runs a command to its end. One thread is enough for what a command does, and the quickest to start.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal("cannot start", error))?;
    let ended = runtime.block_on(command);
    // Nothing of ours is left to wait for; a store's thread may be.
    runtime.shutdown_background();
    ended
}

/// Does this as a client in the name of a command that is to be started, and closes the store then. A signal that comes before
/// there is a client ends it.
async fn on_behalf_of<F>(command: &[OsString], settings: &Settings, work: F) -> Result<Exit, Failure>
where
    F: AsyncFnOnce(&Client, Signals) -> Result<Exit, Failure>,
{
    let mut signals = Signals::catch(&ENDING)?;
    let who = Who::here().with_program(&errand::program(command));
    let client = match unless_signalled(&mut signals, settings.connect_as(who)).await {
        Ok(client) => client?,
        Err(signal) => return Ok(Exit::Signal(signal as i32)),
    };
    let ended = work(&client, signals).await;
    close(&client).await;
    ended
}

/// Closes the store. What is left in it ends with its lease, so a failure here changes nothing.
async fn close(client: &Client) {
    let _ = client.shutdown(GOODBYE).await;
}

/// The ticket as given, or from stdin for `-`: there nobody sees it in the process list.
fn read_ticket(argument: &str) -> Result<Ticket, Failure> {
    let mut text = argument.to_owned();
    if argument == "-" {
        text.clear();
        let read = std::io::stdin().lock().take(64 * 1024).read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("no ticket on stdin: {error}")))?;
    }
    Ok(text.parse()?)
}
