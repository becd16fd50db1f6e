//! A primary and replicas at fixed addresses: whoever promotes a replica tells nobody, so we ask all of them.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use redis::{ErrorKind, RedisError, Value};

use crate::{
    answer::text,
    config::{Address, RedisConfig},
    wire::{Dialer, Find, Whereabouts},
};

/// Servers of which one is the primary.
#[derive(Debug)]
pub(crate) struct Replicas {
    config: Arc<RedisConfig>,
    addresses: Vec<Address>,
}

impl Replicas {
    pub(crate) fn new(config: &Arc<RedisConfig>, addresses: &[Address]) -> Self {
        Self { config: config.clone(), addresses: addresses.to_vec() }
    }

    /// How many replicas this server has if it is a primary.
    async fn following(&self, address: &Address) -> Result<Option<usize>, RedisError> {
        let dialer = Dialer::new(self.config.clone(), Whereabouts::Fixed(address.clone()));
        let mut line = dialer.commands().await?;
        let role: Value = redis::cmd("ROLE").query_async(&mut line.connection).await?;
        let Value::Array(parts) = role else { return Ok(None) };
        let is_primary = parts.first().and_then(text).as_deref() == Some("master");
        let followers = match parts.get(2) {
            Some(Value::Array(followers)) => followers.len(),
            _ => 0,
        };
        Ok(is_primary.then_some(followers))
    }
}

#[async_trait]
impl Find for Replicas {
    async fn primary(&self) -> Result<Address, RedisError> {
        // Each has its own time-out; half the time for finding, half for connecting.
        let patience = self.config.connect_timeout / 2;
        let asked = self.addresses.iter().map(async |address| {
            let late = || std::io::Error::from(std::io::ErrorKind::TimedOut).into();
            (
                address,
                tokio::time::timeout(patience, self.following(address)).await.unwrap_or_else(|_| Err(late())),
            )
        });
        let (mut best, mut failed) = (None, None);
        for (address, answer) in join_all(asked).await {
            match answer {
                // After a failover the old primary may come back as one that nobody follows.
                Ok(Some(followers)) if best.is_none_or(|(most, _)| followers > most) => {
                    best = Some((followers, address));
                }
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        let none = || RedisError::from((ErrorKind::Io, "none of the servers is a primary at the moment"));
        best.map(|(_, address)| address.clone()).ok_or_else(|| failed.unwrap_or_else(none))
    }
}
