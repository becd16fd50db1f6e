//! The cases that Redisson plays on a cluster of three primaries with a replica each.

use leasehold_core::Client;
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{Shared, redis::Cluster};

use crate::common::eventually;

/// One cluster for the cases that run at the same time: each has names of its own.
static CLUSTER: Shared<Cluster> = Shared::new();

/// Plays on the cluster with two clients; afterwards nobody waits on any of its servers.
async fn play(case: impl AsyncFnOnce(&Cluster, &Client, &Client)) {
    let started = tokio::task::spawn_blocking(|| CLUSTER.get_or_skip(Cluster::start));
    let Some(cluster) = started.await.unwrap() else { return };
    let (ours, theirs) = (client(&cluster, "").await, client(&cluster, "").await);
    case(&cluster, &ours, &theirs).await;
    for word in ["CHANNELS", "SHARDCHANNELS"] {
        let silent = |node: usize| {
            cluster.nodes()[node].demand(&["PUBSUB", word, "redisson_*"]).unwrap().parts().is_empty()
        };
        eventually(async || (0..cluster.nodes().len()).all(silent)).await;
    }
}

async fn client(cluster: &Cluster, prefix: &str) -> Client {
    let store = Redis::open(RedisConfig::from_url(&cluster.url()).unwrap()).await.unwrap();
    Client::builder(store).prefix(prefix).build()
}

mod lock {
    use leasehold_core::backend::BreakOutcome;

    use super::play;
    use crate::stage::{LONG, wait};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn test_in_cluster() {
        play(async |_, ours, theirs| {
            for round in 0..3 {
                let guard = ours.lock("lock").ttl(LONG).acquire().await.unwrap();
                assert!(theirs.inspect("lock").await.unwrap().is_some());
                let waiting = wait(&theirs.lock("lock"));
                if round == 1 {
                    let broken = theirs.break_hold("lock", guard.id(), "test").await.unwrap();
                    assert_eq!(broken, BreakOutcome::Broken);
                    drop(guard);
                } else {
                    guard.release().await.unwrap();
                }
                waiting.await.unwrap().release().await.unwrap();
                assert!(theirs.inspect("lock").await.unwrap().is_none());
            }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn test_lock_failover_in_cluster() {
        play(async |_, ours, theirs| {
            for round in 0..30 {
                let client = if round % 2 == 0 { ours } else { theirs };
                let guard = client.lock("again").try_acquire().await.unwrap().unwrap();
                guard.release().await.unwrap();
            }
        })
        .await;
    }
}

mod read_write_lock {
    use leasehold_core::Owner;

    use super::play;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn test_in_cluster() {
        play(async |_, ours, theirs| {
            let (rwlock, me) = (ours.rwlock("read-write"), Owner::new());
            let writer = rwlock.write().owner(&me).acquire().await.unwrap();
            let reader = rwlock.read().owner(&me).acquire().await.unwrap();
            assert!(theirs.rwlock("read-write").read().try_acquire().await.unwrap().is_none());
            reader.release().await.unwrap();
            writer.release().await.unwrap();
            let readers = [rwlock.read().acquire().await, theirs.rwlock("read-write").read().acquire().await];
            for reader in readers {
                reader.unwrap().release().await.unwrap();
            }
        })
        .await;
    }
}

mod spin_lock {
    use super::play;
    use crate::common::java;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn test_in_cluster() {
        play(async |cluster, ours, _| {
            let (holder, owner) = (java(), cluster.owner(cluster.slot_of("spin").unwrap()).unwrap());
            let node = &cluster.nodes()[owner];
            node.demand(&["HSET", "spin", &holder, "1"]).unwrap();
            node.demand(&["PEXPIRE", "spin", "2000"]).unwrap();
            assert!(ours.lock("spin").try_acquire().await.unwrap().is_none());
            // It is given back without a word.
            node.demand(&["DEL", "spin"]).unwrap();
            ours.lock("spin").acquire().await.unwrap().release().await.unwrap();
        })
        .await;
    }
}

mod permit_expirable_semaphore {
    use leasehold_testkit::servers::redis::Reply;

    use super::{client, play};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn test_get_in_cluster_name_mapper() {
        play(async |cluster, _, _| {
            let client = client(cluster, "app:").await;
            let guard = client.semaphore("permits", 2).permits(2).acquire().await.unwrap();
            assert!(client.semaphore("permits", 2).permits(1).try_acquire().await.unwrap().is_none());
            let owner = cluster.owner(cluster.slot_of("app:permits").unwrap()).unwrap();
            let out = cluster.nodes()[owner].demand(&["ZCARD", "{app:permits}:timeout"]).unwrap();
            assert_eq!(out, Reply::Integer(2));
            guard.release().await.unwrap();
        })
        .await;
    }
}
