//! Wake-ups in a cluster: told by slot or plainly, and heard both ways, also when the slot moves.

use futures_util::StreamExt;
use leasehold_core::backend::{Attempt, Claim};
use leasehold_testkit::servers::redis::Reply;

use super::*;

/// One who waits for a name, in line for whatever is told.
async fn waiter(store: &Redis, name: &str) -> Box<dyn Claim> {
    let mut claim = store.claim(spec(name, Mode::Exclusive, Shape::Plain));
    assert!(matches!(claim.attempt().await.unwrap(), Attempt::Busy(_)));
    claim.changed().await.unwrap();
    claim
}

/// Whether something is told within less than the time after which the map is asked for by itself.
pub(super) async fn is_woken(claim: &mut Box<dyn Claim>) -> bool {
    tokio::time::timeout(Duration::from_secs(8), claim.changed()).await.is_ok_and(|rung| rung.is_ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_are_heard_by_slot_and_plainly() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (holder, store) = (client(&cluster).await, store(&cluster).await);
    let (name, slot) = name_on(&cluster, 2);
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let guard = holder.lock(&name).plain().acquire().await.unwrap();
    let mut claim = waiter(&store, &name).await;
    let owner = cluster.owner(slot).unwrap();
    assert_eq!(subscribed(&cluster, owner, "SHARDNUMSUB", &channel), 1);
    // An old Redisson says it to any server, and all hear it.
    assert!(matches!(cluster.nodes()[0].demand(&["PUBLISH", &channel, "0"]).unwrap(), Reply::Integer(_)));
    assert!(is_woken(&mut claim).await);
    // A new one says it to the slot.
    assert!(matches!(
        cluster.nodes()[owner].demand(&["SPUBLISH", &channel, "0"]).unwrap(),
        Reply::Integer(1)
    ));
    assert!(is_woken(&mut claim).await);
    guard.release().await.unwrap();
    assert!(is_woken(&mut claim).await);
    drop(claim);
    eventually(async || {
        subscribed(&cluster, owner, "SHARDNUMSUB", &channel) == 0
            && subscribed(&cluster, owner, "NUMSUB", &channel) == 0
    })
    .await;
}

async fn in_time<T>(told: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("it is told")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ways_of_telling_reach_those_who_listen_in_one() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (name, slot) = name_on(&cluster, 0);
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let owner = &cluster.nodes()[cluster.owner(slot).unwrap()];
    let mut plain = redis::Client::open(cluster.nodes()[1].url()).unwrap().get_async_pubsub().await.unwrap();
    plain.subscribe(&channel).await.unwrap();
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let config = redis::AsyncConnectionConfig::new().set_push_sender(sender);
    let bare = redis::Client::open(format!("{}?protocol=resp3", owner.url())).unwrap();
    let mut bare = bare.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    let _: redis::Value = redis::cmd("SSUBSCRIBE").arg(&channel).query_async(&mut bare).await.unwrap();
    let mut by_slot = async || {
        loop {
            if heard.recv().await.unwrap().kind == redis::PushKind::SMessage {
                return;
            }
        }
    };
    for (how, is_plain, is_by_slot) in
        [("both", true, true), ("plain", true, false), ("sharded", false, true)]
    {
        let config = RedisConfig::from_url(&format!("{}?publish={how}", cluster.url())).unwrap();
        let client = Client::new(Redis::open(config).await.unwrap());
        for shape in 0..2 {
            let lock = client.lock(&name);
            let lock = if shape == 0 { lock } else { lock.label("not the usual path") };
            lock.acquire().await.unwrap().release().await.unwrap();
            if is_plain {
                in_time(plain.on_message().next()).await.unwrap();
            }
            if is_by_slot {
                in_time(by_slot()).await;
            }
        }
    }
    let quiet = Duration::from_millis(50);
    assert!(tokio::time::timeout(quiet, plain.on_message().next()).await.is_err(), "told once each");
    assert!(tokio::time::timeout(quiet, by_slot()).await.is_err(), "told once each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_waits_goes_with_the_slot() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let (holder, store) = (client(&cluster).await, store(&cluster).await);
    let (name, slot) = name_on(&cluster, 0);
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let guard = holder.lock(&name).plain().ttl("1h").acquire().await.unwrap();
    let mut claim = waiter(&store, &name).await;
    assert_eq!(subscribed(&cluster, 0, "SHARDNUMSUB", &channel), 1);
    cluster.migrate_slot(slot, 1).unwrap();
    // Told that the place is another, it looks, and listens there.
    assert!(is_woken(&mut claim).await);
    assert!(matches!(claim.attempt().await.unwrap(), Attempt::Busy(_)));
    claim.changed().await.unwrap();
    eventually(async || subscribed(&cluster, 1, "SHARDNUMSUB", &channel) == 1).await;
    let woken = spawn(async move { is_woken(&mut claim).await });
    guard.release().await.unwrap();
    assert!(woken.await.unwrap());
}
