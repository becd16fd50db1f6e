//! A check that needs an etcd. It says `false` if that may be missing and is.

use std::time::Duration;

use leasehold::backend::{Attempt, Backend, Release};
use leasehold_etcd::{Etcd, EtcdConfig};
use leasehold_testkit::{
    scripted::{Script, Scripted},
    servers::{etcd::Etcd as Server, start_or_skip},
};

use crate::scene::{moment, spec, stand};

/// How often a look is repeated, ten milliseconds apart.
const PATIENCE: usize = 6000;

/// One waits in line and is not heard of until its lease is over. Then another gets the lock: it alone has it.
pub(crate) async fn who_waited_beyond_its_lease_is_not_granted() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let store = Etcd::open(EtcdConfig::from_url(&server.url()).unwrap()).await.unwrap();
    let store = Scripted::new(store, Script::new());
    let (long, short) = (Duration::from_secs(60), Duration::from_secs(2));
    let [mut holder, mut next] = ["0a", "0c"].map(|id| store.claim(spec(id, long)));
    let mut waiter = store.claim(spec("0b", short));
    assert!(matches!(holder.attempt().await.unwrap(), Attempt::Granted(_)));
    stand(&mut *waiter).await;
    for _ in 0..PATIENCE {
        if waiters(&store).await == 0 {
            break;
        }
        moment().await;
    }
    assert_eq!(waiters(&store).await, 0, "its place should have ended with its lease");
    let _: Release = holder.release().await.unwrap();
    assert!(matches!(next.attempt().await.unwrap(), Attempt::Granted(_)));
    let late = waiter.attempt().await.unwrap();
    assert!(
        !matches!(late, Attempt::Granted(_)),
        "granted, though another holds it and its own place was over"
    );
    true
}

async fn waiters(store: &Scripted) -> usize {
    let page = store.list("", None, 10).await.unwrap();
    page.locks.iter().map(|lock| lock.waiters.len()).sum()
}
