//! What the tests of this crate share.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]
#![allow(dead_code, reason = "not every test uses all of it")]

use std::time::Duration;

use leasehold_core::Client;
use leasehold_zookeeper::{ZooKeeper, ZooKeeperConfig};

/// The longest that anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) async fn open(url: &str) -> ZooKeeper {
    ZooKeeper::open(ZooKeeperConfig::from_url(url).unwrap()).await.unwrap()
}

pub(crate) async fn connect(url: &str) -> Client {
    Client::new(open(url).await)
}

/// Waits until something is so.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it did not come about");
}
