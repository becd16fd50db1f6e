//! The command line: its commands and what they share.

use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    commands::{
        acquire, bench, break_hold, completions, cron, doctor, elect, job, ls, man, release, renew, run,
        serve, show, watch,
    },
    config,
    print::Volume,
};

/// Run a program under a lock, see who holds what, free what is stuck.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, max_term_width = 100, after_help = EXITS)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: config::Options,

    #[command(flatten)]
    pub(crate) talk: Talk,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where help lists what every command takes.
pub(crate) const EVERYWHERE: &str = "Options of every command";

const EXITS: &str = "\
Exit codes: the child's own, 128+n if it was killed by signal n, or
   64  the command line makes no sense       78  the configuration makes no sense
   69  the store cannot be reached           79  broken by an operator, child stopped
   75  somebody else holds the lock (-E)    124  --max-run is over, child stopped
   76  lost while running, child stopped    125  something of ours failed
   77  the store does not let us            126, 127  the command cannot be run, is not found";

/// What is done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Cron(cron::Args),
    Elect(elect::Args),
    Job(job::Args),
    Acquire(acquire::Args),
    Renew(renew::Args),
    Release(release::Args),
    Ls(ls::Args),
    Show(show::Args),
    Watch(watch::Args),
    Break(break_hold::Args),
    Doctor(doctor::Args),
    Bench(bench::Args),
    Serve(serve::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// How much is said, and in which form.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Talk {
    /// The form of listings
    #[arg(short, long, value_name = "FORM", global = true, default_value = "table", help_heading = EVERYWHERE)]
    pub(crate) output: Output,

    /// Say more on stderr: how long the wait was, and what is logged beside warnings [env: RUST_LOG]
    #[arg(short, long, global = true, conflicts_with = "quiet", help_heading = EVERYWHERE)]
    verbose: bool,

    /// Say nothing on stderr but what went wrong
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    quiet: bool,
}

impl Talk {
    pub(crate) fn volume(self) -> Volume {
        match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (false, true) => Volume::Verbose,
            (false, false) => Volume::Normal,
        }
    }
}

/// The form of listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// How to ask for a lock: what `run` and `acquire` have in common.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Asking {
    /// Wait this long for the lock, then give up [default: for ever]
    #[arg(short, long, value_name = "DUR", value_parser = duration, conflicts_with = "nonblock")]
    pub(crate) wait: Option<Duration>,

    /// Do not wait at all
    #[arg(short, long)]
    pub(crate) nonblock: bool,

    /// The lease: how long the lock outlives a holder that is cut off [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,

    /// Share the lock with others who share it
    #[arg(short, long, conflicts_with = "permits")]
    pub(crate) shared: bool,

    /// Take K of the N permits of a semaphore
    #[arg(long, value_name = "K/N", value_parser = permits)]
    pub(crate) permits: Option<Permits>,

    /// First come, first served
    #[arg(long)]
    pub(crate) fair: bool,

    /// What it is for, shown to whoever finds the lock busy
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
}

impl Asking {
    /// How long to wait; nothing is for ever.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if self.nonblock { Some(Duration::ZERO) } else { self.wait }
    }

    /// The lock of this name, as asked for, except for the wait.
    pub(crate) fn lock(&self, client: &leasehold::Client, name: &str) -> leasehold::Lock {
        let mut lock = match self.permits {
            Some(Permits { take, of }) => client.semaphore(name, of).permits(take),
            None if self.shared => client.rwlock(name).read(),
            None => client.lock(name),
        };
        lock = lock.asked_at("the command line".into());
        if let Some(ttl) = self.ttl {
            lock = lock.ttl(ttl);
        }
        if let Some(label) = &self.label {
            lock = lock.label(label);
        }
        if self.fair { lock.fair() } else { lock }
    }
}

/// So many permits of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permits {
    pub(crate) take: u32,
    pub(crate) of: u32,
}

/// A length of time as people write it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "not a length of time; write it like 30s, 250ms or '1h 30m'".to_owned())
}

fn permits(text: &str) -> Result<Permits, String> {
    let numbers = text.split_once('/').and_then(|(take, of)| Some((take.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((take, of)) if 1 <= take && take <= of => Ok(Permits { take, of }),
        _ => Err("write it like 1/5: at least one permit, at most all of them".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn permits_are_some_of_some() {
        assert_eq!(permits("2/5"), Ok(Permits { take: 2, of: 5 }));
        for wrong in ["", "3", "0/5", "6/5", "-1/5", "1/5/6", "a/b", "1 / 5", "1/99999999999"] {
            assert!(permits(wrong).is_err(), "{wrong:?}");
        }
    }
}
