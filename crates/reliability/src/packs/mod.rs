//! One file per store and topology: how to start it, what can befall it, and what its locks are worth.

mod etcd;
mod mariadb;
mod memcached;
mod memory;
mod mongodb;
mod operator;
mod postgres;
mod redis_clock;
mod redis_cluster;
mod redis_empty;
mod redis_evicting;
mod redis_replicas;
mod redis_sentinel;
mod redis_single;
mod redis_wire;
mod redlock;
mod sqlite;
mod stores;
mod wires;
mod zookeeper;

use std::{io, time::Duration};

use leasehold_testkit::servers::StartError;

pub use self::stores::STORES;
use crate::{clock::rest, dice::Dice, worker::Kind};

/// A store under test, and its faults.
pub trait Pack: Send {
    /// Where it is found when all is well.
    fn url(&self) -> String;

    /// Where the worker at this place finds it: elsewhere, if it can be parted from the store by itself.
    fn url_for(&self, _place: usize) -> String {
        self.url()
    }

    /// Its server and version, such as `Redis 7.0.15`.
    fn version(&self) -> String;

    /// The kinds of faults it knows, in a few words each.
    fn faults(&self) -> &'static [&'static str];

    /// Inflicts one of its faults, from the beginning until it is healed. The lease of the run is given, because some
    /// faults are interesting only beyond it.
    ///
    /// # Errors
    /// If the store cannot be brought back: the run ends.
    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()>;

    /// Open files that a worker may have more at its end than when it had just connected: connections for waking up and
    /// for renewals are made when they are first needed.
    fn files(&self) -> u64 {
        12
    }

    /// Whatever the store still keeps of locks, by its own words, when all is over and every lease has ended. Those who
    /// were killed may still stand in a line: it is swept when somebody comes by.
    ///
    /// # Errors
    /// If the store cannot be asked.
    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>>;
}

/// A pack by name.
#[derive(Clone, Copy)]
pub struct Store {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for the table.
    pub title: &'static str,
    /// What its locks promise.
    pub promise: Promise,
    /// How it is used.
    pub crew: Crew,
    /// Starts it.
    pub start: fn() -> Result<Box<dyn Pack>, StartError>,
}

/// What a row of the table must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// No overlap, no lost update under fences, no fence out of order, nothing left behind.
    Exclusive,
    /// Overlaps may happen under these faults (level S0) and are shown; fences hold all the same.
    Hint,
    /// A control that must be found broken, or the checkers do not bite.
    Broken,
    /// Another library, for comparison: whatever is found is shown.
    Peer,
}

/// Who works on a store.
#[derive(Clone, Copy, Debug)]
pub struct Crew {
    /// The program of each, beside the one that runs them.
    pub program: &'static str,
    /// How many processes.
    pub workers: usize,
    /// How many tasks in each.
    pub tasks: u32,
    /// How many names per kind.
    pub names: u64,
    /// One hold in so many lasts longer than its lease.
    pub long: u64,
    /// What they do.
    pub kinds: &'static [Kind],
    /// What befalls the workers themselves.
    pub hazards: &'static [Hazard],
    /// How many times as long as others the store takes to heal: so much longer is the calm between its faults,
    /// where operations are counted.
    pub heals: u32,
    /// The shortest lease that is of use on the store, in milliseconds.
    pub shortest: u64,
}

impl Crew {
    /// As it works where operations are counted: more tasks on more names, so that somebody can always go on.
    #[must_use]
    pub fn in_the_long_run(self) -> Self {
        Self { tasks: self.tasks.max(48), names: self.names.max(48), ..self }
    }
}

/// What befalls a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// Killed (SIGKILL) and replaced.
    Kill,
    /// Stopped (SIGSTOP) for up to two leases, and let go on.
    Pause,
}

impl Hazard {
    /// In a few words.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Kill => "worker killed",
            Self::Pause => "worker paused",
        }
    }
}

/// So many processes work, where more than one can.
const WORKERS: usize = 8;

/// How often a fault that is over at once is repeated.
const TIMES: u64 = 10;

/// The same a few times within a second.
fn again(dice: &mut Dice, verb: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..=dice.below(TIMES) {
        verb()?;
        rest(dice.between(Duration::from_millis(10), Duration::from_millis(150)));
    }
    Ok(())
}

/// Whether somebody is in this record, as a text of any kind: it has an end only when somebody comes by, so one that
/// mentions the killed is no leak.
fn is_left(record: &str, killed: &[String]) -> bool {
    let is_used = record.contains("\"holders\"") || record.contains("\"waiters\"");
    is_used && !killed.iter().any(|client| record.contains(client))
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_mentions_none_of_the_killed_is_left() {
        let killed = ["dead".to_owned()];
        assert!(is_left(r#"{"format":1,"holders":[{"client":"alive"}]}"#, &killed));
        assert!(is_left(r#"{"format":1,"waiters":[{"client":"alive"}]}"#, &killed));
        assert!(!is_left(r#"{"format":1,"holders":[{"client":"dead"}]}"#, &killed));
        assert!(!is_left(r#"{"format":1,"spent":[{"id":"alive"}]}"#, &killed), "it ends by itself");
    }
}
