//! What these tests share: a server of one's own, a client of it, and a bare connection that sees what is really there.

#![allow(dead_code, reason = "each test file uses what it needs")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use leasehold_core::{
    ClaimId, Client, ClientId, Key, Who,
    backend::{ClaimSpec, Life, Mode, Shape},
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{redis as servers, start_or_skip};
use redis::{FromRedisValue, aio::MultiplexedConnection};
use tokio::{runtime::Handle, task::JoinHandle};

/// A bare connection, which waits for its answers for as long as it takes: the crate's own half a second is too short
/// for a machine with much to do.
pub(crate) async fn bare(url: &str) -> MultiplexedConnection {
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let server = redis::Client::open(url).unwrap();
    server.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
}

/// A server of one's own, with a bare connection to it.
pub(crate) struct Stage {
    pub(crate) server: servers::Redis,
    pub(crate) bare: MultiplexedConnection,
}

impl Stage {
    /// Starts a server, unless it may be missing and is.
    pub(crate) async fn set() -> Option<Self> {
        let server = start_or_skip(servers::Redis::start)?;
        let bare = bare(&server.url()).await;
        Some(Self { server, bare })
    }

    pub(crate) fn config(&self) -> RedisConfig {
        RedisConfig::from_url(&self.server.url()).unwrap()
    }

    pub(crate) async fn store(&self) -> Redis {
        Redis::open(self.config()).await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::new(self.store().await)
    }

    /// Sends one bare command.
    pub(crate) async fn raw<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(*word);
        }
        command.query_async(&mut self.bare.clone()).await.unwrap()
    }

    /// All keys, sorted.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.raw(&["KEYS", "*"]).await;
        keys.sort_unstable();
        keys
    }

    /// How often a command was carried out.
    pub(crate) async fn calls(&self, command: &str) -> u64 {
        let text: String = self.raw(&["INFO", "commandstats"]).await;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    /// Listens to everything that is published.
    pub(crate) async fn listen(&self) -> Messages {
        let client = redis::Client::open(self.server.url()).unwrap();
        let mut messages = client.get_async_pubsub().await.unwrap();
        messages.psubscribe("*").await.unwrap();
        Messages(messages)
    }
}

/// Everything that is published.
pub(crate) struct Messages(redis::aio::PubSub);

impl Messages {
    /// The next message: its channel and what it says.
    pub(crate) async fn next(&mut self) -> (String, String) {
        let message = self.0.on_message().next().await.unwrap();
        (message.get_channel_name().to_owned(), message.get_payload().unwrap())
    }
}

/// Completes when something is so; the harness ends a test that waits for what never comes.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to be");
}

/// One acquisition, as a store is asked for it.
pub(crate) fn spec(name: &str, mode: Mode, shape: Shape) -> Arc<ClaimSpec> {
    let who = Who::here();
    let id: ClaimId = format!("{}:7", who.client).parse().unwrap();
    let key = Key::new("", name).unwrap();
    let (ttl, fair, life, label) = (Duration::from_secs(30), false, Life::Session, None);
    Arc::new(ClaimSpec {
        id,
        key,
        mode,
        shape,
        ttl,
        fair,
        life,
        who: Arc::new(who),
        label,
        location: None,
        fences: 1,
    })
}

/// An id as Redisson has it.
pub(crate) fn java() -> String {
    format!("{}:42", ClientId::random())
}

/// A task beside the test.
pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    Handle::current().spawn(task)
}
