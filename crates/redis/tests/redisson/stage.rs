//! What every sentence plays on: a server, Java on one side of it, Rust on the other, and an eye on the server itself.

use std::time::Duration;

use leasehold_core::{Client, Guard, Lock, backend::Holder};
use leasehold_interop::{Call, Config, Java, Version};
use leasehold_testkit::servers::start_or_skip;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use crate::common::{self, eventually, spawn};

/// Longer than any test may take: what ends in time was not ended by this.
pub(crate) const LEASE: Duration = Duration::from_secs(600);

/// Where renewal is to be seen or missed: the lease of either side.
pub(crate) const SHORT: Duration = Duration::from_secs(3);

/// The longest that a play may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// Hand-overs in a row: by looking again every five seconds they would take longer than a play may.
pub(crate) const ROUNDS: usize = 12;

/// The sentences of a file, each a test with the newest Redisson and one with an old one.
macro_rules! sentences {
    ($($sentence:ident)*) => {
        mod newest {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $sentence() {
                crate::stage::play(leasehold_interop::Version::Newest, super::$sentence).await;
            })*
        }

        mod old {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $sentence() {
                crate::stage::play(leasehold_interop::Version::Old, super::$sentence).await;
            })*
        }
    };
}

/// A server with Java and Rust on it.
pub(crate) struct Stage {
    pub(crate) redis: common::Stage,
    pub(crate) java: Java,
    pub(crate) rust: Client,
}

/// Plays on a stage of its own; afterwards nobody listens any more.
pub(crate) async fn play(version: Version, scene: impl AsyncFnOnce(&mut Stage)) {
    let Some(redis) = common::Stage::set().await else { return };
    let config = Config::single(&redis.server.url()).with_watchdog(SHORT);
    let Some(java) = start_or_skip(|| Java::start(version, &config)) else { return };
    let rust = redis.client().await;
    let mut stage = Stage { redis, java, rust };
    let played = tokio::time::timeout(PATIENCE, scene(&mut stage)).await;
    assert!(played.is_ok(), "it hangs; in Redis there is {:#?}", stage.dump().await);
    stage.rust.idle().await;
    stage.silence().await;
}

impl Stage {
    /// Until somebody listens on this channel.
    pub(crate) async fn heard(&self, channel: &str) {
        eventually(async || self.channels().await.iter().any(|heard| heard == channel)).await;
    }

    /// Until so many listen on this channel, clients counted.
    pub(crate) async fn heard_by(&self, channel: &str, clients: u32) {
        eventually(async || {
            let heard: Vec<(String, u32)> = self.redis.raw(&["PUBSUB", "NUMSUB", channel]).await;
            heard[0].1 == clients
        })
        .await;
    }

    /// Until nobody listens to anything.
    pub(crate) async fn silence(&self) {
        eventually(async || self.channels().await.is_empty()).await;
    }

    async fn channels(&self) -> Vec<String> {
        self.redis.raw(&["PUBSUB", "CHANNELS", "redisson_*"]).await
    }

    /// Until so many stand in the line of a name.
    pub(crate) async fn line(&self, name: &str, length: usize) {
        let queue = format!("redisson_lock_queue:{{{name}}}");
        eventually(async || self.redis.raw::<usize>(&["LLEN", &queue]).await == length).await;
    }

    /// Who holds a name, as Rust sees it.
    pub(crate) async fn holders(&self, name: &str) -> Vec<Holder> {
        self.rust.inspect(name).await.unwrap().map(|state| state.holders).unwrap_or_default()
    }

    /// Every key with what is left of it, and every channel: what to look at when a play fails.
    async fn dump(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for key in self.redis.keys().await {
            let left: i64 = self.redis.raw(&["PTTL", &key]).await;
            let kind: String = self.redis.raw(&["TYPE", &key]).await;
            let read: &[&str] = match kind.as_str() {
                "hash" => &["HGETALL", &key],
                "list" => &["LRANGE", &key, "0", "-1"],
                "zset" => &["ZRANGE", &key, "0", "-1", "WITHSCORES"],
                _ => &["GET", &key],
            };
            let content: redis::Value = self.redis.raw(read).await;
            lines.push(format!("{key} ({left} ms): {content:?}"));
        }
        lines.push(format!("heard: {:?}", self.channels().await));
        lines
    }
}

/// What Java answered.
pub(crate) async fn java<T: DeserializeOwned + 'static>(call: Call<T>) -> T {
    call.await.unwrap_or_else(|error| panic!("{error}")).value
}

/// Waits for a lock in a task of its own.
pub(crate) fn wait(lock: &Lock) -> JoinHandle<Guard> {
    let lock = lock.clone();
    spawn(async move { lock.acquire().await.unwrap() })
}

/// Until what is left of a lease is more than it was.
pub(crate) async fn grows(left: impl AsyncFn() -> Duration) {
    let mut before = left().await;
    loop {
        let now = left().await;
        if now > before {
            return;
        }
        before = now;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
