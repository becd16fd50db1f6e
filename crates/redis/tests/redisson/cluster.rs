//! Java and Rust on a cluster: they hear each other by slot, whichever server a name lives on.

use leasehold_core::Client;
use leasehold_interop::{Config, Java, Version};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{
    redis::{Cluster, Redis as Server, Reply},
    start_or_skip,
};

use crate::{
    common::eventually,
    stage::{LEASE, ROUNDS, java, wait},
};

/// How many listen on this channel by slot, on all servers.
fn heard_by(cluster: &Cluster, channel: &str) -> i64 {
    let counts = cluster.nodes().iter().map(|node| {
        let heard = node.demand(&["PUBSUB", "SHARDNUMSUB", channel]).unwrap();
        match heard.parts() {
            [_, Reply::Integer(count)] => *count,
            other => panic!("{other:?}"),
        }
    });
    counts.sum()
}

/// Hand-overs to and fro, on names of all servers.
async fn hand_over(version: Version) {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let nodes: Vec<String> = cluster.nodes().iter().map(Server::url).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let Some(redisson) = start_or_skip(|| Java::start(version, &Config::cluster(&nodes))) else { return };
    let rust = Client::new(Redis::open(RedisConfig::from_url(&cluster.url()).unwrap()).await.unwrap());
    for round in 0..ROUNDS {
        let name = format!("n{round}");
        let channel = format!("redisson_lock__channel:{{{name}}}");
        let (theirs, ours) = (redisson.thread("t1").lock(&name), rust.lock(&name).ttl(LEASE));
        java(theirs.lock_for(LEASE)).await;
        let waiting = wait(&ours);
        eventually(async || heard_by(&cluster, &channel) == 1).await;
        java(theirs.unlock()).await;
        let guard = waiting.await.unwrap();
        assert!(!java(theirs.try_lock()).await);
        let waiting = theirs.lock_for(LEASE);
        // Whoever waited and holds now still listens.
        eventually(async || heard_by(&cluster, &channel) == 2).await;
        guard.release().await.unwrap();
        java(waiting).await;
        assert!(ours.try_acquire().await.unwrap().is_none());
        java(theirs.unlock()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_redisson_and_rust_wake_each_other() {
    hand_over(Version::Newest).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_redisson_and_rust_wake_each_other() {
    hand_over(Version::Old).await;
}
