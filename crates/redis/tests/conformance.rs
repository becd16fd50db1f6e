//! Redis passes the suite on every topology: real servers, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{sync::Arc, time::Duration};

use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{Shared, redis as servers},
};

/// A fixture whose clients connect to this URL for as long as these servers run.
fn fixture<T: Send + Sync + 'static>(url: String, servers: Arc<T>) -> Fixture {
    let backends = Fixture::backends(move || {
        let config = RedisConfig::from_url(&url).unwrap();
        async move { Redis::open(config).await.unwrap() }
    });
    backends.keep(servers)
}

leasehold_testkit::conformance!(single, real, {
    static SERVER: Shared<servers::Redis> = Shared::new();
    let server = SERVER.get(servers::Redis::start);
    fixture(server.url(), server)
});

leasehold_testkit::conformance!(valkey, real, {
    static SERVER: Shared<servers::Redis> = Shared::new();
    let setup = servers::Setup::new().with_brand(servers::Brand::Valkey);
    let server = SERVER.get(|| servers::Redis::start_as(&setup));
    fixture(server.url(), server)
});

leasehold_testkit::conformance!(sentinel, real, {
    static SERVERS: Shared<servers::Sentinels> = Shared::new();
    let servers = SERVERS.get(servers::Sentinels::start);
    servers.notice_after(Duration::from_secs(30)).unwrap();
    fixture(servers.url(), servers)
});

// Both replicas confirm every grant and every renewal.
leasehold_testkit::conformance!(replicas, real, {
    static SERVERS: Shared<servers::Replicated> = Shared::new();
    let servers = SERVERS.get(|| servers::Replicated::start(2));
    fixture(format!("{}?wait_replicas=2", servers.url()), servers)
});

leasehold_testkit::conformance!(cluster, real, {
    static SERVERS: Shared<servers::Cluster> = Shared::new();
    let servers = SERVERS.get(servers::Cluster::start);
    fixture(servers.url(), servers)
});

leasehold_testkit::conformance!(redlock, slow, {
    static SERVERS: Shared<servers::Independent> = Shared::new();
    let servers = SERVERS.get(|| servers::Independent::start(5));
    let url = servers.url();
    let quorums = Fixture::backends(move || {
        let url = url.clone();
        async move { leasehold_redis::redlock(&url).await.unwrap() }
    });
    quorums.keep(servers)
});
