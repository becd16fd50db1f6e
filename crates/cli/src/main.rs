//! The `leasehold` command.
//!
//! Reading order: [`args`] is the command line, [`commands`] has one file for each command, and [`exit`] says how
//! the program ends. What `run` needs is in [`supervise`] (the child) and [`dead_man`] (who stops the child when we
//! cannot). Linux: it uses /proc, timers on the boot clock and process groups.

#[cfg(all(feature = "planted-bugs", not(debug_assertions)))]
compile_error!(
    "planted-bugs puts known bugs into every lock: it is for tests, and never for a release build"
);

mod args;
mod commands;
mod config;
mod dead_man;
mod exit;
mod log;
mod nested;
mod print;
mod probe;
mod procfs;
mod status;
mod supervise;
mod table;
mod text;
mod view;

use std::process::ExitCode;

use clap::Parser;

use self::{args::Cli, exit::Failure};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == dead_man::ARGUMENT) {
        return dead_man::process::main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print::help(&error).into(),
    };
    log::begin(cli.talk.volume());
    match commands::dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(Failure { exit, message }) => {
            if !message.is_empty() {
                print::error(&message);
            }
            exit.into()
        }
    }
}
