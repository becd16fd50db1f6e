//! Redis passes the suite: on a real server, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::sync::{Arc, Mutex, PoisonError, Weak};

use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{redis as servers, start_or_skip},
};

/// One server for all cases that run at the same time: they are isolated by their names. It ends with the last of them.
fn server() -> Option<Arc<servers::Redis>> {
    static SERVER: Mutex<Weak<servers::Redis>> = Mutex::new(Weak::new());
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = known.upgrade() {
        return Some(server);
    }
    let server = Arc::new(start_or_skip(servers::Redis::start)?);
    *known = Arc::downgrade(&server);
    Some(server)
}

leasehold_testkit::conformance!(redis, real, {
    let server = server().expect("redis-server is installed");
    let url = server.url();
    Fixture::backends(move || {
        let config = RedisConfig::from_url(&url).unwrap();
        async move { Redis::open(config).await.unwrap() }
    })
    .keep(server)
});
