//! One primary that may move: the others are its replicas.
//!
//! There is one node, and it is *the primary*; each new connection finds out where that is, and insists that it says so
//! itself. Connections move when the primary does: as soon as a sentinel tells, or as soon as the old one refuses writes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use leasehold_core::{
    Operation, Result,
    backend::{Guarantee, Level},
};
use redis::ServerError;

use super::{Detour, Node, Topology};
use crate::{
    config::RedisConfig,
    wire::{Find, Pause, Whereabouts},
};

/// All names live on one primary, wherever it is.
#[derive(Debug)]
pub(crate) struct Primary {
    node: Arc<Node>,
    is_confirmed: bool,
    /// Between tries to reach a primary that is being chosen.
    pause: Pause,
}

impl Primary {
    /// Connects, and finds out at once whether that is allowed.
    pub(crate) async fn open(config: &Arc<RedisConfig>, find: Arc<dyn Find>) -> Result<Self> {
        let node = Arc::new(Node::start(config, Whereabouts::Found(find)));
        let answer = node.wire.call(redis::cmd("PING")).await;
        answer.map_err(|fault| fault.into_error(Operation::Connect))?;
        Ok(Self { node, is_confirmed: config.wait_replicas > 0, pause: Pause::default() })
    }
}

#[async_trait]
impl Topology for Primary {
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
        replicated(self.is_confirmed)
    }

    async fn detour(&self, _name: &str, _tried: &Arc<Node>, refusal: &ServerError) -> Option<Detour> {
        if refusal.code() != "READONLY" {
            self.pause.reset();
            return None;
        }
        // It was the primary and is none any more. The one that follows it may not be chosen yet.
        self.node.leave_for(None);
        tokio::time::sleep(self.pause.next().min(Duration::from_millis(200))).await;
        Some(Detour { node: self.node.clone(), asking: false })
    }
}

/// What locks are worth where a replica may take over.
pub(super) fn replicated(is_confirmed: bool) -> Guarantee {
    if is_confirmed {
        return Guarantee::new(
            Level::S1,
            "a replica takes over that is not among those that confirmed (ask for all that may be promoted), that \
             restarted empty, or whose clock is ahead; a server's clock steps; somebody deletes the key by hand",
        );
    }
    Guarantee::new(
        Level::S0,
        "a replica takes over before it has the lock: replication is asynchronous, so a failover may grant it twice \
         (ask for confirmation with wait_replicas, and let the resource check fences)",
    )
}
