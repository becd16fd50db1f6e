//! One file per store and topology: how to start it, what can befall it, and what its locks are worth.

mod etcd;
mod memory;
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
mod zookeeper;

use std::{io, time::Duration};

use leasehold_testkit::servers::StartError;

use crate::{dice::Dice, worker::Kind};

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

/// The program of workers, and of those that use other libraries, which is built by itself.
const WORKER: &str = "leasehold-worker";
const PEER: &str = "leasehold-peer";

/// So many processes work, where more than one can.
const WORKERS: usize = 8;

/// Eight processes that do everything, killed and paused.
const EVERYTHING: Crew = Crew {
    program: WORKER,
    workers: WORKERS,
    tasks: 6,
    names: 2,
    long: 150,
    kinds: &Kind::ALL,
    hazards: &[Hazard::Kill, Hazard::Pause],
    heals: 1,
    shortest: 0,
};

/// Eight processes that only take one lock at a time.
const LOCKS: Crew = Crew { tasks: 4, names: 4, kinds: &[Kind::Lock], ..EVERYTHING };

/// Everything, where a failover takes ten seconds and more until all is as before.
const EVERYTHING_WITH_FAILOVERS: Crew = Crew { heals: 8, ..EVERYTHING };

/// Eight processes that mostly hold a lock for long: whoever forgets it is found out.
const LONG_HOLDS: Crew = Crew { long: 3, ..LOCKS };

/// What a majority can agree on.
const OF_A_MAJORITY: Crew = Crew { kinds: &[Kind::Lock, Kind::Rw, Kind::Reentry, Kind::Set], ..EVERYTHING };

/// Eight processes that use another library.
const fn peers(kinds: &'static [Kind]) -> Crew {
    Crew { program: PEER, kinds, ..LOCKS }
}

/// Everything, among storms and a crowd.
const IN_MEMORY: [Kind; 8] =
    [Kind::Lock, Kind::Fair, Kind::Rw, Kind::Permits, Kind::Reentry, Kind::Set, Kind::Storm, Kind::Crowd];

/// Every store that runs by default, in the order of the table.
pub const STORES: &[Store] = &[
    Store {
        name: "memory",
        title: "memory, one process",
        promise: Promise::Exclusive,
        crew: Crew { workers: 1, tasks: 15, kinds: &IN_MEMORY, hazards: &[Hazard::Pause], ..EVERYTHING },
        start: memory::start,
    },
    Store {
        name: "sqlite",
        title: "SQLite, one file",
        promise: Promise::Exclusive,
        crew: EVERYTHING,
        start: sqlite::start,
    },
    Store {
        name: "redis-single",
        title: "Redis, one server, AOF always",
        promise: Promise::Exclusive,
        crew: EVERYTHING,
        start: redis_single::start,
    },
    Store {
        name: "redis-wire",
        title: "Redis, one server, AOF always, behind a bad wire",
        promise: Promise::Exclusive,
        crew: EVERYTHING,
        start: redis_wire::start,
    },
    Store {
        name: "redis-empty",
        title: "Redis, one server, restarts empty",
        promise: Promise::Hint,
        crew: LONG_HOLDS,
        start: redis_empty::start,
    },
    Store {
        name: "redis-evicting",
        title: "Redis, one server, evicts keys at random",
        promise: Promise::Hint,
        crew: LOCKS,
        start: redis_evicting::start,
    },
    Store {
        name: "redis-clock",
        title: "Redis, one server, AOF always, its clock steps",
        promise: Promise::Hint,
        crew: LONG_HOLDS,
        start: redis_clock::start,
    },
    Store {
        name: "redis-replicas-wait",
        title: "Redis, three servers, promoted by hand, wait_replicas=2",
        promise: Promise::Exclusive,
        crew: EVERYTHING,
        start: redis_replicas::start,
    },
    Store {
        name: "redis-sentinel",
        title: "Redis, three servers and Sentinel, asynchronous",
        promise: Promise::Hint,
        crew: EVERYTHING,
        start: redis_sentinel::start,
    },
    Store {
        name: "redis-sentinel-wait",
        title: "Redis, three servers and Sentinel, wait_replicas=2",
        promise: Promise::Exclusive,
        crew: EVERYTHING_WITH_FAILOVERS,
        start: redis_sentinel::start_waiting,
    },
    Store {
        name: "redis-cluster",
        title: "Redis Cluster, three primaries and their replicas, asynchronous",
        promise: Promise::Hint,
        // A failover takes longer than the usual lease: nobody would still believe in what it loses.
        crew: Crew { tasks: 12, names: 40, shortest: 4000, ..LONG_HOLDS },
        start: redis_cluster::start,
    },
    Store {
        name: "redis-cluster-wait",
        title: "Redis Cluster, three primaries and their replicas, wait_replicas=1",
        promise: Promise::Exclusive,
        crew: EVERYTHING_WITH_FAILOVERS,
        start: redis_cluster::start_waiting,
    },
    Store {
        name: "redlock",
        title: "Redlock, five servers, AOF always",
        promise: Promise::Exclusive,
        crew: OF_A_MAJORITY,
        start: redlock::start,
    },
    Store {
        name: "redlock-empty",
        title: "Redlock, five servers, restart empty",
        promise: Promise::Hint,
        crew: LONG_HOLDS,
        start: redlock::start_empty,
    },
    Store {
        name: "etcd",
        title: "etcd, three members",
        promise: Promise::Exclusive,
        crew: Crew { heals: 4, shortest: 2000, ..EVERYTHING },
        start: etcd::start,
    },
    Store {
        name: "etcd-stopped",
        title: "etcd, three members, its leader stopped and going on",
        promise: Promise::Hint,
        crew: Crew { shortest: 2000, ..EVERYTHING },
        start: etcd::start_stopping,
    },
    Store {
        name: "zookeeper",
        title: "ZooKeeper, three servers",
        promise: Promise::Exclusive,
        crew: Crew { heals: 4, ..EVERYTHING },
        start: zookeeper::start,
    },
    Store {
        name: "naive",
        title: "control: SET NX + DEL on one Redis, AOF always",
        promise: Promise::Broken,
        crew: Crew { kinds: &[Kind::Naive], ..LOCKS },
        start: redis_single::start,
    },
    Store {
        name: "peer-rslock",
        title: "peer: rslock 0.10 on one Redis, AOF always",
        promise: Promise::Peer,
        crew: peers(&[Kind::Rslock]),
        start: redis_single::start,
    },
    Store {
        name: "peer-rslock-five",
        title: "peer: rslock 0.10 on five servers, AOF always",
        promise: Promise::Peer,
        crew: peers(&[Kind::Rslock]),
        start: redlock::start,
    },
    Store {
        name: "peer-redlock-five",
        title: "peer: redlock 2.0 on five servers, AOF always",
        promise: Promise::Peer,
        crew: peers(&[Kind::Redlock]),
        start: redlock::start,
    },
];

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("name", &self.name).finish_non_exhaustive()
    }
}
