//! Sentinels: they watch a primary by its name, and promote a replica when it fails.
//!
//! Whenever a connection is made, they are asked where the primary is, the one that answered last first. Between times a
//! task listens to one of them for `+switch-master`, so that connections to a primary that is cut off from its sentinels,
//! but not from us, are left as soon as the others have chosen another.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt;
use redis::{ErrorKind, RedisError, Value};

use super::Node;
use crate::{
    answer::text,
    config::{Address, RedisConfig},
    wire::{Dialer, Find, Pause, Whereabouts},
};

/// How often the primary is asked for although nobody told of a change: messages can be lost.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Those who know a primary.
#[derive(Debug)]
pub(crate) struct Sentinels {
    dialers: Vec<Dialer>,
    name: String,
    tls: bool,
    patience: Duration,
    /// Which of them answered last.
    first: AtomicUsize,
}

impl Sentinels {
    pub(crate) fn new(config: &Arc<RedisConfig>, addresses: &[Address], name: &str) -> Self {
        let mut own = (**config).clone();
        (own.username, own.password) = (own.sentinel_username.take(), own.sentinel_password.take());
        own.db = 0;
        let own = Arc::new(own);
        let dialers =
            addresses.iter().map(|address| Dialer::new(own.clone(), Whereabouts::Fixed(address.clone())));
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        Self {
            dialers: dialers.collect(),
            name: name.to_owned(),
            tls: config.servers.talk_tls(),
            // One that is mute must leave time to ask the others, and to connect.
            patience: config.connect_timeout / (count + 1),
            first: AtomicUsize::new(0),
        }
    }

    /// Tells this node of every move, until it is closed or nobody has it any more.
    pub(crate) fn watch(self: Arc<Self>, node: &Arc<Node>) {
        let (over, node) = (node.over(), Arc::downgrade(node));
        tokio::runtime::Handle::current().spawn(async move {
            tokio::select! {
                () = over => {}
                () = self.listen_on(&node) => {}
            }
        });
    }

    /// Listens to one after the other, for ever.
    async fn listen_on(&self, node: &Weak<Node>) {
        let pause = Pause::default();
        for sentinel in self.dialers.iter().cycle() {
            if let Err(error) = self.listen(sentinel, node, &pause).await {
                tracing::debug!(%error, "no messages from a sentinel");
            }
            tokio::time::sleep(pause.next()).await;
        }
    }

    /// Listens to one of them until it fails or nobody needs it any more.
    async fn listen(&self, sentinel: &Dialer, node: &Weak<Node>, pause: &Pause) -> Result<(), RedisError> {
        let (mut messages, _) = sentinel.messages().await?;
        messages.subscribe("+switch-master").await?;
        pause.reset();
        let mut told = messages.into_on_message();
        loop {
            // Asked only now, so that no move between asking and listening is missed.
            let primary = self.ask(sentinel).await?;
            let Some(node) = node.upgrade() else { return Ok(()) };
            node.leave_for(Some(&primary));
            drop(node);
            if let Ok(None) = tokio::time::timeout(ASK_AGAIN, told.next()).await {
                return Ok(());
            }
        }
    }

    async fn ask(&self, sentinel: &Dialer) -> Result<Address, RedisError> {
        let asking = async {
            let mut line = sentinel.commands().await?;
            let mut command = redis::cmd("SENTINEL");
            command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
            let answer: Value = command.query_async(&mut line.connection).await?;
            self.address(&answer).ok_or_else(|| {
                let message = format!("no sentinel that answers knows a primary called {:?}", self.name);
                RedisError::from((ErrorKind::InvalidClientConfig, "unknown primary", message))
            })
        };
        let late = || Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        tokio::time::timeout(self.patience, asking).await.unwrap_or_else(|_| late())
    }

    fn address(&self, answer: &Value) -> Option<Address> {
        let Value::Array(parts) = answer else { return None };
        let [host, port] = &parts[..] else { return None };
        Some(Address::Tcp { host: text(host)?, port: text(port)?.parse().ok()?, tls: self.tls })
    }
}

#[async_trait]
impl Find for Sentinels {
    async fn primary(&self) -> Result<Address, RedisError> {
        let (count, first) = (self.dialers.len(), self.first.load(Ordering::Relaxed));
        let mut failed = None;
        for turn in (0..count).map(|step| (first + step) % count) {
            match self.ask(&self.dialers[turn]).await {
                Ok(address) => {
                    self.first.store(turn, Ordering::Relaxed);
                    return Ok(address);
                }
                // One that is down says less than one that does not know the name.
                Err(error) if failed.is_none() || !error.is_io_error() => failed = Some(error),
                Err(_) => {}
            }
        }
        Err(failed
            .unwrap_or_else(|| RedisError::from((ErrorKind::EmptySentinelList, "no sentinel is named"))))
    }
}
