//! Every row of the table: a store, what it promises, and who works on it.

use super::{
    Crew, Hazard, Promise, Store, WORKERS, etcd, mariadb, memcached, memory, mongodb, postgres, redis_clock,
    redis_cluster, redis_empty, redis_evicting, redis_replicas, redis_sentinel, redis_single, redis_wire,
    redlock, sqlite, zookeeper,
};
use crate::worker::Kind;

/// The program of workers, and of those that use other libraries, which is built by itself.
const WORKER: &str = "leasehold-worker";
const PEER: &str = "leasehold-peer";

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

/// Everything, where an answer may take a while, and a request that is not answered is given up after seconds.
const ON_A_DATABASE: Crew = Crew { shortest: 2000, ..EVERYTHING };

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
        name: "postgres",
        title: "PostgreSQL, one server",
        promise: Promise::Exclusive,
        crew: ON_A_DATABASE,
        start: postgres::start,
    },
    Store {
        name: "postgres-pooled",
        title: "PostgreSQL behind PgBouncer, by the transaction",
        promise: Promise::Exclusive,
        crew: ON_A_DATABASE,
        start: postgres::start_pooled,
    },
    Store {
        name: "mariadb",
        title: "MariaDB, one server",
        promise: Promise::Exclusive,
        crew: ON_A_DATABASE,
        start: mariadb::start,
    },
    Store {
        name: "mongodb",
        title: "MongoDB, a replica set of three",
        promise: Promise::Exclusive,
        crew: Crew { heals: 4, shortest: 3000, ..ON_A_DATABASE },
        start: mongodb::start,
    },
    Store {
        name: "mongodb-single",
        title: "MongoDB, one server",
        promise: Promise::Exclusive,
        crew: ON_A_DATABASE,
        start: mongodb::start_single,
    },
    Store {
        name: "memcached",
        title: "memcached, one server",
        promise: Promise::Hint,
        crew: LONG_HOLDS,
        start: memcached::start,
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
