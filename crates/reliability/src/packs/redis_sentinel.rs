//! Redis watched by sentinels: the primary is killed, stopped, or told to hand over, and another takes its place.
//!
//! Replication is asynchronous, so a failover may lose what the old primary had just granted: that row is a hint. With
//! `wait_replicas` for all replicas a grant is returned only when both have it, and a failover loses nothing.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Keeps, Sentinels, Setup},
};

use super::{Pack, redis_single};
use crate::{
    clock::rest,
    dice::Dice,
    enclosure::{From, PEERS, Wall, is_enclosed},
};

const KILL: &str = "primary killed, failover, restarted";
const PAUSE: &str = "primary paused, failover, resumed";
const HAND_OVER: &str = "SENTINEL FAILOVER";
const SPLIT: &str = "primary parted from servers and sentinels, failover, healed";
const PART: &str = "primary parted from everybody, failover, healed";

struct Watched {
    servers: Sentinels,
    options: &'static str,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    open("")
}

/// Every grant and renewal is known to both replicas before it is believed.
pub(super) fn start_waiting() -> Result<Box<dyn Pack>, StartError> {
    open("?wait_replicas=2")
}

fn open(options: &'static str) -> Result<Box<dyn Pack>, StartError> {
    let setup = Setup::new().with_keeps(Keeps::EveryWrite);
    let servers = Sentinels::start_as(&if is_enclosed() { setup.with_source(PEERS) } else { setup })?;
    Ok(Box::new(Watched { servers, options }))
}

impl Pack for Watched {
    fn url(&self) -> String {
        format!("{}{}", self.servers.url(), self.options)
    }

    fn version(&self) -> String {
        redis_single::version(&self.servers.members()[0])
    }

    fn faults(&self) -> &'static [&'static str] {
        let faults: &[&str] = &[KILL, PAUSE, HAND_OVER, SPLIT, PART];
        if is_enclosed() { faults } else { &faults[..3] }
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        match fault {
            KILL => {
                let old = self.servers.crash_primary()?;
                self.servers.await_failover(old)?;
                rest(dice.between(Duration::ZERO, Duration::from_secs(1)));
                self.servers.members_mut()[old].restart().map_err(io::Error::other)?;
            }
            PAUSE => {
                let old = self.servers.primary()?;
                self.servers.members()[old].pause()?;
                let failed_over = self.servers.await_failover(old);
                self.servers.members()[old].resume()?;
                failed_over?;
            }
            SPLIT | PART => {
                let old = self.servers.primary()?;
                let from = if fault == SPLIT { From::Peers } else { From::Everybody };
                let wall = Wall::around(self.servers.members()[old].port(), from)?;
                self.servers.await_failover(old)?;
                // Two that take writes, where clients reach both.
                rest(dice.between(Duration::ZERO, lease));
                wall.open()?;
            }
            _ => drop(self.servers.failover()?),
        }
        self.servers.await_settled()
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers_after_failovers(&self.servers.members()[self.servers.primary()?], killed)
    }
}
