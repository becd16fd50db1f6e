//! What every case plays on: a server of its own, two clients of it, and an eye on the server itself.

use std::{sync::Arc, time::Duration};

use leasehold_core::{ClaimId, Client, Guard, Lock, backend::Holder};
use leasehold_redis::Redis;
use redis::FromRedisValue;
use tokio::{runtime::Builder, task::JoinHandle};

use crate::common::{self, eventually, spawn};

/// The longest that a case may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A lease that is to be seen ending, or being renewed.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// Longer than any case may take: what ends in time was not ended by this.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// How a kind of lock is made.
pub(crate) type Make = fn(&Client, &str) -> Lock;

/// A server with two clients.
pub(crate) struct Stage {
    pub(crate) redis: common::Stage,
    pub(crate) ours: Client,
    pub(crate) theirs: Client,
}

/// Cases that every kind of lock has: this one's are made like this.
macro_rules! as_lock {
    ($make:expr; $($case:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            crate::stage::play(async |stage| crate::as_lock::$case(stage, $make).await).await;
        })*
    };
}

/// Plays on a stage of its own; afterwards nobody listens any more.
pub(crate) async fn play(case: impl AsyncFnOnce(&mut Stage)) {
    let Some(redis) = common::Stage::set().await else { return };
    let (ours, theirs) = (redis.client().await, redis.client().await);
    let mut stage = Stage { redis, ours, theirs };
    let played = tokio::time::timeout(PATIENCE, case(&mut stage)).await;
    assert!(played.is_ok(), "it hangs; in Redis there are {:?}", stage.redis.keys().await);
    for client in [&stage.ours, &stage.theirs] {
        client.idle().await;
    }
    eventually(async || stage.channels().await.is_empty()).await;
    assert_eq!(stage.raw::<u32>(&["PUBSUB", "NUMPAT"]).await, 0);
}

impl Stage {
    /// Sends one bare command.
    pub(crate) async fn raw<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.redis.raw(words).await
    }

    /// Looks at a server that was restarted.
    pub(crate) async fn look_again(&mut self) {
        self.redis.bare = common::bare(&self.redis.server.url()).await;
    }

    /// What is subscribed by those who wait.
    pub(crate) async fn channels(&self) -> Vec<String> {
        self.raw(&["PUBSUB", "CHANNELS", "redisson_*"]).await
    }

    /// Until so many clients listen on this channel.
    pub(crate) async fn heard_by(&self, channel: &str, clients: u32) {
        eventually(async || {
            let heard: Vec<(String, u32)> = self.raw(&["PUBSUB", "NUMSUB", channel]).await;
            heard[0].1 == clients
        })
        .await;
    }

    /// Until so many stand in the line of a name.
    pub(crate) async fn line(&self, name: &str, length: usize) {
        let queue = format!("redisson_lock_queue:{{{name}}}");
        eventually(async || self.raw::<usize>(&["LLEN", &queue]).await == length).await;
    }

    /// What a lock has left to live, as Redisson reads it: -2 if it is not there.
    pub(crate) async fn ttl(&self, key: &str) -> i64 {
        self.raw(&["PTTL", key]).await
    }

    /// Who holds a name, as another client sees it.
    pub(crate) async fn holders(&self, name: &str) -> Vec<Holder> {
        self.theirs.inspect(name).await.unwrap().map(|state| state.holders).unwrap_or_default()
    }

    /// Whether anybody holds a name.
    pub(crate) async fn is_locked(&self, name: &str) -> bool {
        !self.holders(name).await.is_empty()
    }

    /// How often this acquisition holds a name.
    pub(crate) async fn count(&self, name: &str, id: ClaimId) -> u32 {
        self.holders(name).await.iter().filter(|holder| holder.id == id).map(|holder| holder.count).sum()
    }

    /// Has a client of its own do something, and dies with it: its connections close and nothing is given back.
    pub(crate) async fn dies<T>(&self, doing: impl AsyncFnOnce(&Client) -> T + Send + 'static) {
        let config = self.redis.config();
        let died = tokio::task::spawn_blocking(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let life = runtime.block_on(async {
                let client = Client::new(Redis::open(config).await.unwrap());
                (doing(&client).await, client)
            });
            runtime.shutdown_background();
            drop(life);
        });
        died.await.unwrap();
    }

    /// A number of clients besides.
    pub(crate) async fn clients(&self, number: usize) -> Vec<Client> {
        let mut clients = Vec::new();
        for _ in 0..number {
            clients.push(self.redis.client().await);
        }
        clients
    }
}

/// Waits for a lock in a task of its own.
pub(crate) fn wait(lock: &Lock) -> JoinHandle<Guard> {
    let lock = lock.clone();
    spawn(async move { lock.acquire().await.unwrap() })
}

/// Until this hold was renewed so often.
pub(crate) async fn renewed(guard: &Guard, times: usize) {
    for _ in 0..times {
        let deadline = guard.deadline();
        assert!(guard.renewed(deadline).await > deadline, "it was lost instead");
        guard.check().unwrap();
    }
}

/// A number that is only right if those who add to it do so one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<std::sync::atomic::AtomicU64>);

impl Counter {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Adds one in two steps.
    pub(crate) async fn add(&self) {
        let seen = self.get();
        tokio::task::yield_now().await;
        self.0.store(seen + 1, std::sync::atomic::Ordering::SeqCst);
    }

    /// Adds one in two steps, under this lock.
    pub(crate) async fn add_under(&self, lock: &Lock) {
        let guard = lock.acquire().await.unwrap();
        self.add().await;
        guard.release().await.unwrap();
    }
}
