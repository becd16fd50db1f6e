//! How a run is asked for on the command line, what that means for each store, and how to ask for the same again.
//!
//! A run that counts operations is about exclusion in the long run: stores that promise it get many tasks on many names
//! with little work, and some calm between faults, or most of the time nobody could have a lock at all. All other rows
//! have only to show what they are, and are the same as in a run of a minute.

use std::{path::PathBuf, time::Duration};

use clap::Parser;

use crate::{
    nemesis,
    packs::{Promise, Store},
};

/// A short round: a handful of faults of the store and of its workers. Which, the seed says; not every kind comes up.
const SHORT: u64 = 6;

/// The lease of a short round, in milliseconds.
const SHORT_LEASE: u64 = 1000;

/// Seconds of a row that is not asked for in operations: S0 rows take half of that to be found broken.
const USUAL: u64 = 60;

/// The longest work under a lock, in milliseconds.
const WORK: u64 = 20;

/// The same where operations are counted.
const LONG_RUN_WORK: u64 = 2;

/// The mean time between two faults where operations are counted.
const LONG_RUN_CALM: Duration = Duration::from_millis(2500);

/// Leasehold under faults.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// One store instead of all: see the names it prints
    #[arg(long)]
    pub store: Option<String>,
    /// Seconds under faults, per store
    #[arg(long, default_value_t = USUAL)]
    pub seconds: u64,
    /// Go on until so many acquires and releases per exclusive store were checked, instead of so many seconds
    #[arg(long, conflicts_with_all = ["seconds", "short"])]
    pub operations: Option<u64>,
    /// The seed of the first round; the next round has the next
    #[arg(long)]
    pub seed: Option<u64>,
    /// A few seconds per store, with short leases, without peers: for every change
    #[arg(long)]
    pub short: bool,
    /// The lease, in milliseconds
    #[arg(long, default_value_t = 2000)]
    pub lease: u64,
    /// The longest work under a lock, in milliseconds
    #[arg(long)]
    pub work: Option<u64>,
    /// Tasks in each worker, instead of the store's own number
    #[arg(long)]
    pub tasks: Option<u32>,
    /// Names per kind, instead of the store's own number
    #[arg(long)]
    pub names: Option<u64>,
    /// The mean calm between two faults of the store, and between two of the workers, in milliseconds
    #[arg(long, num_args = 1, value_delimiter = ',', value_names = ["STORE,WORKERS"])]
    pub calm: Vec<u64>,
    /// So many stores at once: with many servers most of the time of a long run is spent waiting for them to heal
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=16))]
    pub together: u64,
    /// Keep the histories of rounds in which nothing was found, too
    #[arg(long)]
    pub keep: bool,
    /// Write the page to this file
    #[arg(long)]
    pub write: Option<PathBuf>,
    /// The commit, for the page
    #[arg(long, default_value = "unknown")]
    pub commit: String,
}

/// When a store's rounds are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many seconds under faults.
    Seconds(u64),
    /// So many acquires and releases.
    Operations(u64),
}

/// How a store is worked on, and how often it is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// The lease.
    pub lease: Duration,
    /// The longest work under a lock.
    pub work: Duration,
    /// Tasks in each worker.
    pub tasks: u32,
    /// Names per kind.
    pub names: u64,
    /// The mean time between two faults of the store, and between two of the workers.
    pub calm: [Duration; 2],
}

impl Options {
    /// What a store's rounds are to come to.
    pub fn goal(&self, store: &Store) -> Goal {
        match self.operations {
            Some(operations) if store.promise == Promise::Exclusive => Goal::Operations(operations),
            _ if self.short => Goal::Seconds(SHORT),
            _ => Goal::Seconds(self.seconds),
        }
    }

    /// How it is gone about.
    pub fn manner(&self, store: &Store) -> Manner {
        let is_long = matches!(self.goal(store), Goal::Operations(_));
        let (crew, work, calm) = if is_long {
            (store.crew.in_the_long_run(), LONG_RUN_WORK, [LONG_RUN_CALM * store.crew.heals, LONG_RUN_CALM])
        } else {
            (store.crew, WORK, [nemesis::CALM; 2])
        };
        let asked = [0, 1].map(|stream| self.calm.get(stream).or(self.calm.first()));
        let asked = asked.map(|calm| calm.copied().map(Duration::from_millis));
        Manner {
            lease: Duration::from_millis(self.lease().max(store.crew.shortest)),
            work: Duration::from_millis(self.work.unwrap_or(work)),
            tasks: self.tasks.unwrap_or(crew.tasks),
            names: self.names.unwrap_or(crew.names),
            calm: [0, 1].map(|stream| asked[stream].unwrap_or(calm[stream])),
        }
    }

    /// The lease, in milliseconds.
    pub fn lease(&self) -> u64 {
        if self.short { SHORT_LEASE } else { self.lease }
    }

    /// The command for the same run.
    pub fn command(&self, seed: u64) -> String {
        let mut words = vec!["cargo xtask reliability".to_owned()];
        words.extend(self.store.as_ref().map(|store| format!("--store {store}")));
        let mut say = |option: &str, value: Option<u64>| {
            words.extend(value.map(|value| format!("--{option} {value}")));
        };
        match self.operations {
            Some(operations) => say("operations", Some(operations)),
            None => say("seconds", (!self.short).then_some(self.seconds)),
        }
        say("seed", Some(seed));
        say("lease", (!self.short).then_some(self.lease));
        say("work", self.work);
        say("tasks", self.tasks.map(u64::from));
        say("names", self.names);
        say("together", (self.together > 1).then_some(self.together));
        if !self.calm.is_empty() {
            let calm: Vec<String> = self.calm.iter().map(ToString::to_string).collect();
            words.push(format!("--calm {}", calm.join(",")));
        }
        if self.short {
            words.insert(1, "--short".to_owned());
        }
        words.join(" ")
    }
}

impl Manner {
    /// The command for one round of it.
    pub fn command(&self, store: &Store, seconds: u64, seed: u64) -> String {
        let Self { lease, work, tasks, names, calm } = self;
        let [lease, work, of_store, of_workers] =
            [*lease, *work, calm[0], calm[1]].map(|time| time.as_millis());
        format!(
            "cargo xtask reliability --store {} --seconds {seconds} --seed {seed} --lease {lease} --work {work} \
             --tasks {tasks} --names {names} --calm {of_store},{of_workers}",
            store.name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs::STORES;

    fn options(words: &str) -> Options {
        Options::parse_from(std::iter::once("reliability").chain(words.split_whitespace()))
    }

    /// What is behind the command's own name.
    fn asked(command: &str) -> Options {
        options(command.strip_prefix("cargo xtask reliability").unwrap())
    }

    #[test]
    fn the_command_of_a_round_asks_for_the_same_round() {
        for words in
            ["--operations 1000000", "--short", "", "--tasks 3 --names 5 --work 7 --calm 9 --lease 800"]
        {
            for store in STORES {
                let manner = options(words).manner(store);
                let again = asked(&manner.command(store, 17, 4));
                assert_eq!(again.manner(store), manner, "{words} {}", store.name);
                assert_eq!((again.goal(store), again.seed), (Goal::Seconds(17), Some(4)));
                assert_eq!(again.store.as_deref(), Some(store.name));
            }
        }
    }

    #[test]
    fn the_command_of_a_run_asks_for_the_same_run() {
        for words in
            ["--operations 1000", "--short", "--seconds 90 --calm 100", "--work 3 --store etcd --tasks 1"]
        {
            let run = options(words);
            let again = asked(&run.command(5));
            assert_eq!((again.seed, &again.store), (Some(5), &run.store));
            for store in STORES {
                assert_eq!((again.manner(store), again.goal(store)), (run.manner(store), run.goal(store)));
            }
        }
    }

    #[test]
    fn only_stores_that_exclude_are_asked_for_operations() {
        let run = options("--operations 1000");
        for store in STORES {
            let counted = run.goal(store) == Goal::Operations(1000);
            assert_eq!(counted, store.promise == Promise::Exclusive, "{}", store.name);
        }
    }
}
