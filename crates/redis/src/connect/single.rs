//! One server.

use std::sync::Arc;

use leasehold_core::{
    Error, Operation, Result,
    backend::{Guarantee, Level},
};

use super::{Node, Topology};
use crate::config::RedisConfig;

/// All names live on one server.
#[derive(Debug)]
pub(crate) struct Single {
    node: Arc<Node>,
}

impl Single {
    /// Connects, and finds out at once whether that is allowed.
    pub(crate) async fn open(config: Arc<RedisConfig>) -> Result<Self> {
        if config.wait_replicas.is_some_and(|replicas| replicas > 0) {
            let message = "a single server has no replicas to wait for; leave wait_replicas out";
            return Err(Error::config(Operation::Connect, message));
        }
        let node = Arc::new(Node::start(config));
        let answer = node.wire.call(redis::cmd("PING")).await;
        answer.map_err(|fault| fault.into_error(Operation::Connect))?;
        Ok(Self { node })
    }
}

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
}
