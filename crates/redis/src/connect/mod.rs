//! How a name finds its server: a topology is one small file here.
//!
//! Everything above asks a [`Topology`] for the [`Node`] of a name and speaks to that; which nodes there are, which is
//! the primary and where a slot has moved is nobody else's business.

mod single;

use std::{fmt::Debug, sync::Arc};

use leasehold_core::backend::Guarantee;

pub(crate) use self::single::Single;
use crate::{
    bell::Ear,
    config::RedisConfig,
    wire::{Dialer, Wire},
};

/// The servers of one store.
pub(crate) trait Topology: Debug + Send + Sync + 'static {
    /// The server that decides about this name now.
    fn node(&self, name: &str) -> Arc<Node>;

    /// Names of one slot may share a request. One server is one slot.
    fn slot(&self, name: &str) -> u16;

    /// All servers that decide about names, for listings.
    fn nodes(&self) -> Vec<Arc<Node>>;

    /// The command by which wake-ups are told.
    fn verb(&self) -> &'static str;

    /// What locks on these servers are worth.
    fn guarantee(&self) -> Guarantee;
}

/// One server: a line for requests and an ear for messages.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) wire: Wire,
    pub(crate) ear: Ear,
}

impl Node {
    /// Nothing is sent before something is asked for.
    pub(crate) fn start(config: Arc<RedisConfig>) -> Self {
        let dialer = Dialer::new(config);
        Self { wire: Wire::start(dialer.clone()), ear: Ear::start(dialer) }
    }

    pub(crate) fn close(&self) {
        self.wire.close();
        self.ear.close();
    }
}
