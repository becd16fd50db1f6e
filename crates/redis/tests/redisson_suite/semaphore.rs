//! `RedissonSemaphoreTest`: the semaphore that only counts, shared by saying `counting()`. Ours are leases all the same,
//! and only a guard gives back. What Java's other calls do to the number is played here.

use leasehold_core::{Client, ErrorKind, Semaphore, backend::Kind};
use tokio::task::JoinSet;

use crate::{
    common::eventually,
    stage::{Counter, LONG, Stage, play, wait},
};

/// What is available, as Redisson reads it.
async fn available(stage: &Stage) -> Option<i64> {
    stage.raw(&["GET", "s"]).await
}

/// A semaphore that only counts, of so many at the most.
fn counting(client: &Client, most: u32) -> Semaphore {
    client.semaphore("s", most).counting()
}

/// Java sets, adds to or gives back to the number: all of them change it and tell the new one.
async fn java_adds(stage: &Stage, permits: i64) -> i64 {
    let now: i64 = stage.raw(&["INCRBY", "s", &permits.to_string()]).await;
    stage.raw::<u32>(&["PUBLISH", "redisson_sc:{s}", &now.to_string()]).await;
    now
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire_after_add_permits() {
    play(async |stage| {
        java_adds(stage, 1).await;
        let waiting = wait(&counting(&stage.ours, 5).permits(2));
        stage.heard_by("redisson_sc:{s}", 1).await;
        let one = counting(&stage.theirs, 5).acquire().await.unwrap();
        one.release().await.unwrap();
        assert_eq!(available(stage).await, Some(1));
        assert!(!waiting.is_finished(), "one came and went; two are wanted");
        java_adds(stage, 1).await;
        waiting.await.unwrap().release().await.unwrap();
        assert_eq!(available(stage).await, Some(2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_zero() {
    play(async |stage| {
        let error = counting(&stage.ours, 3).permits(0).try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert_eq!(counting(&stage.ours, 0).acquire().await.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(available(stage).await, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire_without_set_permits() {
    play(async |stage| {
        for _ in 0..2 {
            java_adds(stage, 1).await;
        }
        let guard = counting(&stage.ours, 2).permits(2).try_acquire().await.unwrap().unwrap();
        assert_eq!(available(stage).await, Some(0));
        guard.release().await.unwrap();
        // Where there is no number at all, the first of us who asks makes it.
        let guard =
            stage.ours.semaphore("other", 2).counting().permits(2).try_acquire().await.unwrap().unwrap();
        guard.release().await.unwrap();
        assert_eq!(stage.raw::<i64>(&["GET", "other"]).await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_set_permits() {
    play(async |stage| {
        let guard = counting(&stage.ours, 10).acquire().await.unwrap();
        assert_eq!(stage.raw::<i64>(&["SETNX", "s", "15"]).await, 0, "the first who sets it, sets it");
        assert_eq!(stage.theirs.inspect("s").await.unwrap().unwrap().kind, Kind::Semaphore { of: 10 });
        guard.release().await.unwrap();
        // One that Java made to expire is taken as it is, and not kept beyond its time.
        stage.raw::<()>(&["SET", "s", "10", "PX", "60000"]).await;
        counting(&stage.ours, 10).acquire().await.unwrap().release().await.unwrap();
        assert!((1..=60_000).contains(&stage.ttl("s").await));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_add_permits() {
    play(async |stage| {
        java_adds(stage, 10).await;
        let ten = counting(&stage.ours, 14).permits(10).acquire().await.unwrap();
        assert_eq!(java_adds(stage, 4).await, 4);
        ten.release().await.unwrap();
        assert_eq!(available(stage).await, Some(14));
        let five = counting(&stage.ours, 14).permits(5).acquire().await.unwrap();
        assert_eq!(available(stage).await, Some(9));
        five.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_reduce_permits() {
    play(async |stage| {
        java_adds(stage, 10).await;
        let ten = counting(&stage.ours, 10).permits(10).acquire().await.unwrap();
        assert_eq!(java_adds(stage, -5).await, -5);
        assert!(counting(&stage.ours, 10).permits(1).try_acquire().await.unwrap().is_none());
        ten.release().await.unwrap();
        assert_eq!(available(stage).await, Some(5));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_drain_permits() {
    play(async |stage| {
        java_adds(stage, 10).await;
        let three = counting(&stage.ours, 10).permits(3).acquire().await.unwrap();
        assert_eq!(stage.raw::<i64>(&["GETSET", "s", "0"]).await, 7);
        assert!(counting(&stage.ours, 10).permits(1).try_acquire().await.unwrap().is_none());
        three.release().await.unwrap();
        assert_eq!(available(stage).await, Some(3), "what we held is given back, no more");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_if_exists() {
    play(async |stage| {
        java_adds(stage, 10).await;
        let guard = counting(&stage.ours, 10).acquire().await.unwrap();
        guard.release().await.unwrap();
        assert_eq!(available(stage).await, Some(10));
        let guard = counting(&stage.ours, 10).acquire().await.unwrap();
        stage.raw::<u32>(&["DEL", "s"]).await;
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(available(stage).await, None, "what is gone is not made anew by giving back");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_blocking_acquire() {
    play(async |stage| {
        let guard = counting(&stage.theirs, 1).permits(1).ttl(LONG).acquire().await.unwrap();
        let waiting = wait(&counting(&stage.ours, 1).permits(1));
        stage.heard_by("redisson_sc:{s}", 1).await;
        assert!(!waiting.is_finished());
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_blocking_n_acquire() {
    play(async |stage| {
        let semaphore = counting(&stage.theirs, 5).permits(1).ttl(LONG);
        let (one, two) = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
        let waiting = wait(&counting(&stage.ours, 5).permits(5));
        stage.heard_by("redisson_sc:{s}", 1).await;
        one.release().await.unwrap();
        eventually(async || available(stage).await == Some(4)).await;
        assert!(!waiting.is_finished());
        two.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_n_acquire() {
    play(async |stage| {
        let guard = counting(&stage.theirs, 5).permits(3).ttl(LONG).acquire().await.unwrap();
        let four = counting(&stage.ours, 5).permits(4);
        assert!(four.try_acquire().await.unwrap().is_none());
        let waiting = wait(&four.wait("20s"));
        stage.heard_by("redisson_sc:{s}", 1).await;
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_acquire() {
    play(async |stage| {
        let semaphore = counting(&stage.ours, 10);
        let one = semaphore.acquire().await.unwrap();
        assert_eq!(available(stage).await, Some(9));
        one.release().await.unwrap();
        assert_eq!(available(stage).await, Some(10));
        let five = semaphore.permits(5).acquire().await.unwrap();
        assert_eq!(available(stage).await, Some(5));
        five.release().await.unwrap();
        assert_eq!(available(stage).await, Some(10));
    })
    .await;
}

/// So many tasks, spread over so many clients, add to a counter under the only permit, each so often.
async fn counted(stage: &Stage, clients: usize, tasks: usize, times: u64) {
    let (clients, counter) = (stage.clients(clients).await, Counter::default());
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (permit, counter) = (counting(&clients[task % clients.len()], 1).permits(1), counter.clone());
        running.spawn(async move {
            for _ in 0..times {
                counter.add_under(&permit).await;
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.get(), tasks as u64 * times);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_single_instance() {
    play(async |stage| counted(stage, 1, 15, 1).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_loop_multi_instance() {
    play(async |stage| counted(stage, 6, 6, 8).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_multi_instance_1_permits() {
    play(async |stage| counted(stage, 20, 20, 1).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_loop_max_multi_instance() {
    play(async |stage| {
        let (clients, most) = (stage.clients(4).await, u32::try_from(i32::MAX).unwrap());
        let mut running = JoinSet::new();
        for (task, client) in clients.iter().enumerate() {
            let semaphore = counting(client, most);
            running.spawn(async move {
                for round in 0..10 {
                    let take = if (task + round) % 2 == 0 { 1 } else { most };
                    semaphore.permits(take).acquire().await.unwrap().release().await.unwrap();
                }
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        assert_eq!(available(stage).await, Some(most.into()));
    })
    .await;
}
