//! What an acquire and a release cost, by the server's own count.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use common::connect;
use leasehold_testkit::servers::{etcd as servers, start_or_skip};

const ROUNDS: u32 = 100;

/// Every request the server has answered, of whatever sort.
fn requests(server: &servers::Etcd) -> f64 {
    server.metric("grpc_server_handled_total{").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_is_one_request_and_so_is_a_release() {
    let Some(server) = start_or_skip(servers::Etcd::start) else { return };
    let client = connect(&server.url()).await;
    // The first of a length asks for the lease that the others use again. It is long, so that nothing has to go on.
    let lock = client.lock("a").ttl("1h");
    lock.acquire().await.unwrap().release().await.unwrap();
    let before = requests(&server);
    for _ in 0..ROUNDS {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let each = (requests(&server) - before) / f64::from(ROUNDS);
    println!("{each:.2} requests per acquire and release");
    assert!((each - 2.0).abs() < 1e-9, "{each} requests per acquire and release");
}
