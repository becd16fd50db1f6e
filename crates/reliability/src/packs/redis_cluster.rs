//! A Redis Cluster: primaries are killed, paused or walled in and their replicas take over, and slots of names in use
//! move to and fro.
//!
//! Replication is asynchronous, so a failover may lose what the old primary had just granted: that row is a hint. With
//! `wait_replicas` a grant is returned only when the replica that may take over has it.

use std::{io, net::Ipv4Addr, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Cluster, Keeps, Role, Setup},
};

use super::{Pack, redis_single};
use crate::{
    clock::rest,
    dice::Dice,
    enclosure::{From, PEERS, Server, Wall, is_enclosed},
};

const KILL: &str = "primary killed, taken over, restarted";
const PAUSE: &str = "primary paused, taken over, resumed";
const SPLIT: &str = "primary parted from all nodes, taken over, healed";
const PART: &str = "primary parted from everybody, taken over, healed";
const MOVE: &str = "slot of a name moved";

/// Some names that workers use who do everything, and those who only lock.
const NAMES: [&str; 6] = ["lock-0", "fair-1", "rw-0", "permits-1", "reentry-0", "set-1"];
const LOCKS: [&str; 4] = ["lock-0", "lock-1", "lock-2", "lock-3"];

struct Slots {
    servers: Cluster,
    names: &'static [&'static str],
    options: &'static str,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    open("", &LOCKS)
}

/// Every grant and renewal is known to the primary's replica before it is believed.
pub(super) fn start_waiting() -> Result<Box<dyn Pack>, StartError> {
    open("?wait_replicas=1", &NAMES)
}

fn open(options: &'static str, names: &'static [&'static str]) -> Result<Box<dyn Pack>, StartError> {
    let setup = Setup::new().with_keeps(Keeps::EveryWrite);
    let servers = Cluster::start_as(&if is_enclosed() { setup.with_source(PEERS) } else { setup })?;
    Ok(Box::new(Slots { servers, names, options }))
}

impl Pack for Slots {
    fn url(&self) -> String {
        format!("{}{}", self.servers.url(), self.options)
    }

    fn version(&self) -> String {
        redis_single::version(&self.servers.nodes()[0])
    }

    fn faults(&self) -> &'static [&'static str] {
        let faults: &[&str] = &[KILL, PAUSE, MOVE, SPLIT, PART];
        if is_enclosed() { faults } else { &faults[..3] }
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let name = *dice.choose(self.names);
        let slot = self.servers.slot_of(name)?;
        match fault {
            KILL => {
                let old = self.servers.crash_owner(slot)?;
                self.servers.await_takeover(slot, old)?;
                rest(dice.between(Duration::ZERO, Duration::from_secs(1)));
                self.servers.nodes_mut()[old].restart().map_err(io::Error::other)?;
            }
            PAUSE => {
                let old = self.servers.owner(slot)?;
                self.servers.nodes()[old].pause()?;
                let taken_over = self.servers.await_takeover(slot, old);
                self.servers.nodes()[old].resume()?;
                taken_over?;
            }
            SPLIT | PART => {
                let old = self.servers.owner(slot)?;
                let wall = self.wall_in(old, if fault == SPLIT { From::Peers } else { From::Everybody })?;
                self.servers.await_takeover(slot, old)?;
                rest(dice.between(Duration::ZERO, lease));
                wall.open()?;
            }
            _ => return self.migrate(slot, dice),
        }
        self.servers.await_settled()
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        let left = self
            .primaries()
            .map(|node| redis_single::leftovers_after_failovers(&self.servers.nodes()[node], killed));
        Ok(left.collect::<io::Result<Vec<_>>>()?.concat())
    }
}

impl Slots {
    fn primaries(&self) -> impl Iterator<Item = usize> {
        let is_primary =
            |node: &usize| self.servers.nodes()[*node].role().is_ok_and(|role| role == Role::Primary);
        (0..self.servers.nodes().len()).filter(is_primary)
    }

    fn migrate(&self, slot: u16, dice: &mut Dice) -> io::Result<()> {
        let owner = self.servers.owner(slot)?;
        let others: Vec<usize> = self.primaries().filter(|node| *node != owner).collect();
        self.servers.migrate_slot(slot, *dice.choose(&others))
    }

    fn wall_in(&self, node: usize, from: From) -> io::Result<Wall> {
        let own = Ipv4Addr::from(u32::from(PEERS) + node as u32);
        let (port, bus) = (self.servers.nodes()[node].port(), self.servers.bus(node)?);
        Wall::around_all_of(Server { port, bus: Some((bus, own)) }, from)
    }
}
