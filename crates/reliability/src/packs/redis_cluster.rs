//! A Redis Cluster: primaries are killed and their replicas take over, and slots of names in use move to and fro.
//!
//! Replication is asynchronous, so a failover may lose what the old primary had just granted: this row is a hint.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Cluster, Keeps, Role, Setup},
};

use super::{Pack, redis_single};
use crate::{clock::rest, dice::Dice};

const KILL: &str = "primary killed, taken over, restarted";
const MOVE: &str = "slot of a name moved";

/// Some names that workers use.
const NAMES: [&str; 6] = ["lock-0", "fair-1", "rw-0", "permits-1", "reentry-0", "set-1"];

struct Slots(Cluster);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Slots(Cluster::start_as(&Setup::new().with_keeps(Keeps::EveryWrite))?)))
}

impl Pack for Slots {
    fn url(&self) -> String {
        self.0.url()
    }

    fn version(&self) -> String {
        redis_single::version(&self.0.nodes()[0])
    }

    fn faults(&self) -> &'static [&'static str] {
        &[KILL, MOVE]
    }

    fn inflict(&mut self, fault: &str, _lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let name = *dice.choose(&NAMES);
        let slot = self.0.slot_of(name)?;
        if fault == KILL {
            let old = self.0.crash_owner(slot)?;
            self.0.await_takeover(slot, old)?;
            rest(dice.between(Duration::ZERO, Duration::from_secs(1)));
            self.0.nodes_mut()[old].restart().map_err(io::Error::other)?;
            return self.0.await_settled();
        }
        let owner = self.0.owner(slot)?;
        let others: Vec<usize> = self.primaries().filter(|node| *node != owner).collect();
        self.0.migrate_slot(slot, *dice.choose(&others))
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        let left = self.primaries().map(|node| redis_single::leftovers(&self.0.nodes()[node], killed));
        Ok(left.collect::<io::Result<Vec<_>>>()?.concat())
    }
}

impl Slots {
    fn primaries(&self) -> impl Iterator<Item = usize> {
        let is_primary = |node: &usize| self.0.nodes()[*node].role().is_ok_and(|role| role == Role::Primary);
        (0..self.0.nodes().len()).filter(is_primary)
    }
}
