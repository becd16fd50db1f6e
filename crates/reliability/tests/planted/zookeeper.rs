//! A check that needs a ZooKeeper. It says `false` if that may be missing and is.

use std::time::Duration;

use leasehold::backend::{Attempt, Backend};
use leasehold_testkit::{
    faultline::{Faultline, Speech},
    scripted::{Script, Scripted},
    servers::{start_or_skip, zookeeper::ZooKeeper as Server},
};
use leasehold_zookeeper::{ZooKeeper, ZooKeeperConfig};

use crate::scene::spec;

/// How often the answer to a try may be lost before it is known to be.
const TRIES: usize = 10;

async fn store(url: &str) -> Scripted {
    let store = ZooKeeper::open(ZooKeeperConfig::from_url(url).unwrap()).await.unwrap();
    Scripted::new(store, Script::new())
}

/// An acquisition is begun in one session and repeated in the next, whose answer is lost. When the first session ends, the
/// acquisition is held all the same, and nobody else gets it.
pub(crate) async fn what_an_earlier_session_left_is_not_held() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let line = Faultline::before(server.address(), Speech::Pieces).unwrap();
    let far = format!("zookeeper://{}?session_timeout=30s&command_timeout=5s", line.address());
    let [earlier, later, other] = [store(&server.url()).await, store(&far).await, store(&server.url()).await];
    let lease = Duration::from_secs(5);
    let mut first = earlier.claim(spec("0a", lease));
    assert!(matches!(first.attempt().await.unwrap(), Attempt::Granted(_)));
    let mut again = later.claim(spec("0a", lease));
    let hit = line.swallow_reply(b"__lock__", 1);
    let mut tries = 0;
    let granted = loop {
        tries += 1;
        match again.attempt().await {
            Ok(attempt) => break matches!(attempt, Attempt::Granted(_)),
            Err(error) => assert!(tries < TRIES, "{error}"),
        }
    };
    assert_eq!(hit.times(), 1, "one answer was lost");
    assert!(granted, "it is the same acquisition");
    earlier.close().await.unwrap();
    let taken = other.claim(spec("0b", lease)).attempt().await.unwrap();
    assert!(!matches!(taken, Attempt::Granted(_)), "held by two: it went with the session that left it");
    true
}
