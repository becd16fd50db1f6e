//! etcd passes the suite, alone and as a cluster: real servers, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::sync::Arc;

use leasehold_etcd::{Etcd, EtcdConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{Shared, etcd as servers},
};

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
