//! One server.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::{
    Error, Operation, Result,
    backend::{Guarantee, Level},
};
use redis::ServerError;

use super::{Detour, Node, Topology};
use crate::{
    config::{Address, RedisConfig},
    wire::Whereabouts,
};

/// All names live on one server.
#[derive(Debug)]
pub(crate) struct Single {
    node: Arc<Node>,
}

impl Single {
    /// Connects, and finds out at once whether that is allowed.
    pub(crate) async fn open(config: &Arc<RedisConfig>, address: &Address) -> Result<Self> {
        if config.wait_replicas > 0 {
            let message = "a single server has no replicas to wait for; leave wait_replicas out, or connect with \
                           redis+replicas:// or redis+sentinel://";
            return Err(Error::config(Operation::Connect, message));
        }
        let single = Self::start(config, address);
        let answer = single.node.wire.call(redis::cmd("PING")).await;
        answer.map_err(|fault| fault.into_error(Operation::Connect))?;
        Ok(single)
    }

    /// As [`open`](Self::open), but connects when it is needed.
    pub(crate) fn start(config: &Arc<RedisConfig>, address: &Address) -> Self {
        Self { node: Arc::new(Node::start(config, Whereabouts::Fixed(address.clone()))) }
    }
}

#[async_trait]
impl Topology for Single {
    fn node(&self, _name: &str) -> Arc<Node> {
        self.node.clone()
    }

    fn slot(&self, _name: &str) -> u16 {
        0
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        vec![self.node.clone()]
    }

    fn verb(&self) -> &'static str {
        "PUBLISH"
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::new(
            Level::S1,
            "the server's clock steps, it restarts without having every write on disk (appendonly yes, appendfsync \
             always), somebody deletes the key by hand, or memory policy evicts it",
        )
    }

    async fn detour(&self, _name: &str, _tried: &Arc<Node>, _refusal: &ServerError) -> Option<Detour> {
        None
    }
}
