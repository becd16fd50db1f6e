//! The servers beside Redis: each is started for as long as it is measured, so that none is in another's way.

use std::any::Any;

use leasehold_testkit::servers::{
    StartError,
    etcd::Etcd,
    memcached::Memcached,
    mongodb::{Mongodb, ReplicaSet},
    mysql::{Brand, MySql},
    postgres::Postgres,
    redis::{self, Independent, Redis, Setup},
    zookeeper::ZooKeeper,
};

use crate::harness::{Contender, Stage};

/// A store that can be started.
pub(super) struct Store {
    pub(super) name: &'static str,
    /// What a `peer.toml` calls it.
    pub(super) id: &'static str,
    start: fn() -> Result<Started, StartError>,
}

/// One that runs, until this is dropped.
pub(super) struct Started {
    pub(super) url: String,
    _server: Box<dyn Any>,
}

pub(super) const ETCD: Store =
    Store { name: "etcd", id: "etcd", start: || started(Etcd::start(), Etcd::url) };

pub(super) const ZOOKEEPER: Store =
    Store { name: "ZooKeeper", id: "zookeeper", start: || started(ZooKeeper::start(), ZooKeeper::url) };

pub(super) const POSTGRES: Store = Store {
    name: "PostgreSQL",
    id: "postgres",
    start: || started(Postgres::start(), |server| server.url("postgres")),
};

pub(super) const MARIADB: Store = Store {
    name: "MariaDB",
    id: "mysql",
    start: || started(MySql::start(Brand::MariaDb), |server| server.url("mysql")),
};

pub(super) const MONGODB: Store =
    Store { name: "MongoDB", id: "mongodb", start: || started(Mongodb::start(), Mongodb::url) };

pub(super) const MONGODB_SET: Store = Store {
    name: "MongoDB, replica set of 3",
    id: "mongodb",
    start: || started(ReplicaSet::start(), ReplicaSet::url),
};

pub(super) const MEMCACHED: Store =
    Store { name: "memcached", id: "memcached", start: || started(Memcached::start(), Memcached::url) };

pub(super) const VALKEY: Store = Store {
    name: "Valkey",
    id: "valkey",
    start: || started(Redis::start_as(&Setup::new().with_brand(redis::Brand::Valkey)), Redis::url),
};

pub(super) const REDLOCK: Store =
    Store { name: "Redlock of 5", id: "redlock", start: || started(Independent::start(5), Independent::url) };

fn started<S: Any>(server: Result<S, StartError>, url: impl Fn(&S) -> String) -> Result<Started, StartError> {
    let server = server?;
    Ok(Started { url: url(&server), _server: Box::new(server) })
}

impl Store {
    /// Starts it. One that is not installed is no failure: the inner error says what is missing.
    pub(super) fn start(&self) -> Result<Result<Started, String>, String> {
        match (self.start)() {
            Ok(started) => Ok(Ok(started)),
            Err(why @ StartError::NotInstalled { .. }) => Ok(Err(format!("not here: {why}"))),
            Err(error) => Err(format!("{} does not start: {error}", self.name)),
        }
    }

    /// Those who have locks on it too.
    pub(super) fn peers(&self, stage: &Stage) -> Vec<Contender> {
        let mut peers = stage.peers_of(self.id);
        if self.id == POSTGRES.id {
            peers.push(Contender::advisory());
        }
        peers
    }
}
