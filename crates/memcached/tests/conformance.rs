//! memcached passes the suite: a real server, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use leasehold_memcached::{Memcached, MemcachedConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{Shared, memcached as servers},
};

leasehold_testkit::conformance!(memcached, real, {
    static SERVER: Shared<servers::Memcached> = Shared::new();
    let server = SERVER.get(servers::Memcached::start);
    let url = server.url();
    let open = move || {
        let config = MemcachedConfig::from_url(&url).unwrap();
        async move { Memcached::open(config).await.unwrap() }
    };
    Fixture::records(open).without_bell().keep(server)
});
