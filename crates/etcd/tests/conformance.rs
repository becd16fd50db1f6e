//! etcd passes the suite, alone and as a cluster: real servers, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::sync::{Arc, Mutex, PoisonError, Weak};

use leasehold_etcd::{Etcd, EtcdConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{StartError, etcd as servers, start_or_skip},
};

/// One set of servers for all cases that run at the same time: they are isolated by their names. It ends with the last
/// of them.
struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    fn get(&self, start: impl FnOnce() -> Result<T, StartError>) -> Arc<T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(servers) = known.upgrade() {
            return servers;
        }
        let servers = Arc::new(start_or_skip(start).expect("the server is installed"));
        *known = Arc::downgrade(&servers);
        servers
    }
}

/// A fixture whose clients connect to this URL for as long as these servers run.
fn fixture<T: Send + Sync + 'static>(url: String, servers: Arc<T>) -> Fixture {
    let backends = Fixture::backends(move || {
        let config = EtcdConfig::from_url(&url).unwrap();
        async move { Etcd::open(config).await.unwrap() }
    });
    backends.keep(servers)
}

leasehold_testkit::conformance!(single, real, {
    static SERVER: Shared<servers::Etcd> = Shared::new();
    let server = SERVER.get(servers::Etcd::start);
    fixture(server.url(), server)
});

leasehold_testkit::conformance!(cluster, real, {
    static SERVERS: Shared<servers::Cluster> = Shared::new();
    let servers = SERVERS.get(servers::Cluster::start);
    fixture(servers.url(), servers)
});
