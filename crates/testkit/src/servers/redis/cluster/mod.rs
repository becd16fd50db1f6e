//! A cluster of three primaries with one replica each, that share the slots among them.

mod form;
mod migrate;
mod view;

use std::io;

pub use self::migrate::Migration;
use super::{Redis, Reply, Setup, together, url};
use crate::servers::StartError;

const SLOTS: u16 = 16384;
const PRIMARIES: usize = 3;
const NODES: usize = 6;

/// A cluster. Nodes 0, 1 and 2 start as primaries with a third of the slots each, nodes 3, 4 and 5 as their replicas.
///
/// A replica takes the place of a primary that crashed two to three seconds later. Slots without an owner do not keep
/// the others from working.
#[derive(Debug)]
pub struct Cluster(Vec<Redis>);

impl Cluster {
    /// Starts one, and waits until all six nodes say that it works.
    ///
    /// # Errors
    /// [`StartError`], of the first that did not start.
    pub fn start() -> Result<Self, StartError> {
        Self::start_as(&Setup::new())
    }

    /// Starts one as it is asked for. If nodes are to speak from an address of their own, the first speaks from that one,
    /// and the others from those that follow.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_as(setup: &Setup) -> Result<Self, StartError> {
        let cluster = Self(together::start(NODES, |node| form::start_node(&setup.numbered(node)))?);
        let formed = form::form(&cluster.0).and_then(|()| cluster.await_settled());
        formed.map_err(|error| together::not_ready(&error, &cluster.0))?;
        Ok(cluster)
    }

    /// The URL that names all nodes.
    pub fn url(&self) -> String {
        url("redis+cluster", &self.0)
    }

    /// The nodes, in the order they were started.
    pub fn nodes(&self) -> &[Redis] {
        &self.0
    }

    /// The nodes, to crash and restart.
    pub fn nodes_mut(&mut self) -> &mut [Redis] {
        &mut self.0
    }

    /// The port at which this node hears its peers.
    ///
    /// # Errors
    /// If it does not say so.
    pub fn bus(&self, node: usize) -> io::Result<u16> {
        form::bus_port(&self.0[node])?.parse().map_err(io::Error::other)
    }

    /// The slot of a key, as the servers count it.
    ///
    /// # Errors
    /// If no node answers.
    pub fn slot_of(&self, key: &str) -> io::Result<u16> {
        let ask = |node: &Redis| match node.demand(&["CLUSTER", "KEYSLOT", key]).ok()? {
            Reply::Integer(slot) => u16::try_from(slot).ok(),
            _ => None,
        };
        self.0.iter().find_map(ask).ok_or_else(|| io::Error::other("no node of the cluster answers"))
    }

    /// Which node owns this slot now: all nodes that answer say so, and it does itself. Waits for that.
    ///
    /// # Errors
    /// If it is not so within a minute.
    pub fn owner(&self, slot: u16) -> io::Result<usize> {
        together::until("the nodes agree on the slot's owner", || self.seen_owner(slot, None))
    }

    /// Kills the primary that owns this slot (SIGKILL), and returns which it was.
    ///
    /// # Errors
    /// As for [`owner`](Self::owner).
    pub fn crash_owner(&mut self, slot: u16) -> io::Result<usize> {
        let owner = self.owner(slot)?;
        self.0[owner].crash()?;
        Ok(owner)
    }

    /// Waits until another node than `before` owns the slot, and returns which. What `before` itself says is not
    /// asked for: it may be paused, or back without having been told.
    ///
    /// # Errors
    /// If there is none within a minute.
    pub fn await_takeover(&self, slot: u16, before: usize) -> io::Result<usize> {
        // An owner must say so itself, so the one that is not asked is never found to be it.
        together::until("another node took the slot over", || self.seen_owner(slot, Some(before)))
    }

    /// Waits until all six nodes run and see each other, three primaries own all slots between them, and each replica
    /// has its primary's data.
    ///
    /// # Errors
    /// If that is not so within a minute.
    pub fn await_settled(&self) -> io::Result<()> {
        together::until("all nodes see a cluster that works", || form::is_settled(&self.0).then_some(()))
    }

    /// The owner of a slot, if all nodes that answer name the same, itself included.
    fn seen_owner(&self, slot: u16, unasked: Option<usize>) -> Option<usize> {
        let asked = self.0.iter().enumerate().filter(|(index, _)| Some(*index) != unasked);
        let views: Vec<_> = asked.filter_map(|(index, node)| Some((index, view::of(node).ok()?))).collect();
        let owners =
            views.iter().map(|(_, seen)| seen.iter().find(|seen| seen.owns(slot)).map(|seen| seen.port));
        let mut owners = owners.collect::<Option<Vec<u16>>>()?.into_iter();
        let port = owners.next()?;
        if owners.any(|other| other != port) {
            return None;
        }
        let owner = self.0.iter().position(|node| node.port() == port)?;
        views.iter().any(|(index, _)| *index == owner).then_some(owner)
    }
}
