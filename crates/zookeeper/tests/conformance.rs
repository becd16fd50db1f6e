//! ZooKeeper passes the suite, alone and as an ensemble: real servers, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::sync::Arc;

use leasehold_testkit::{
    conformance::Fixture,
    servers::{Shared, zookeeper as servers},
};
use leasehold_zookeeper::{ZooKeeper, ZooKeeperConfig};

/// Sessions long enough for the leases that cases ask for: no lease is longer than half a session.
fn fixture<T: Send + Sync + 'static>(url: &str, servers: Arc<T>) -> Fixture {
    let url = format!("{url}?session_timeout=150s&command_timeout=20s&connect_timeout=20s");
    let backends = Fixture::backends(move || {
        let config = ZooKeeperConfig::from_url(&url).unwrap();
        async move { ZooKeeper::open(config).await.unwrap() }
    });
    backends.keep(servers)
}

leasehold_testkit::conformance!(single, real, {
    static SERVER: Shared<servers::ZooKeeper> = Shared::new();
    let server = SERVER.get(servers::ZooKeeper::start);
    fixture(&server.url(), server)
});

leasehold_testkit::conformance!(ensemble, real, {
    static SERVERS: Shared<servers::Ensemble> = Shared::new();
    let servers = SERVERS.get(|| servers::Ensemble::start(3));
    fixture(&servers.url(), servers)
});
