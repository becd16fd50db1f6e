//! A primary and two replicas that nobody watches: an operator promotes another by hand, now and then carelessly.
//!
//! With `wait_replicas` for all replicas a grant is returned only when both have it. So whichever is promoted has it, and
//! an old primary that was not told, or comes back as what it was, finds nobody to confirm what it grants.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Keeps, Replicated, Setup},
};

use super::{Pack, redis_single};
use crate::{
    clock::rest,
    dice::Dice,
    enclosure::{From, PEERS, Wall, is_enclosed},
};

const SWITCH: &str = "another promoted by hand";
const KILL: &str = "primary killed, another promoted, restarted as primary";
const PAUSE: &str = "replica paused";
const RESTART: &str = "replica killed and restarted";
const SPLIT: &str = "primary parted from replicas, another promoted, healed";
const PART: &str = "primary parted from everybody, another promoted, healed";

const REPLICAS: usize = 2;

struct Tended(Replicated);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let setup = Setup::new().with_keeps(Keeps::EveryWrite);
    let setup = if is_enclosed() { setup.with_source(PEERS) } else { setup };
    Ok(Box::new(Tended(Replicated::start_as(REPLICAS, &setup)?)))
}

impl Pack for Tended {
    fn url(&self) -> String {
        format!("{}?wait_replicas={REPLICAS}", self.0.url())
    }

    fn version(&self) -> String {
        redis_single::version(self.0.primary())
    }

    fn faults(&self) -> &'static [&'static str] {
        let faults: &[&str] = &[SWITCH, KILL, PAUSE, RESTART, SPLIT, PART];
        if is_enclosed() { faults } else { &faults[..4] }
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let (old, other) = (self.0.primary_index(), self.replica(dice));
        match fault {
            SWITCH => {
                self.0.promote(other)?;
                // Two that take writes, until the old one is told.
                rest(dice.between(Duration::ZERO, lease));
                self.follow()
            }
            KILL => {
                self.0.members_mut()[old].crash()?;
                self.0.promote(other)?;
                rest(dice.between(Duration::ZERO, lease));
                self.0.members_mut()[old].restart().map_err(io::Error::other)?;
                rest(dice.between(Duration::ZERO, lease));
                self.follow()
            }
            SPLIT | PART => {
                let from = if fault == SPLIT { From::Peers } else { From::Everybody };
                let wall = Wall::around(self.0.members()[old].port(), from)?;
                rest(dice.between(Duration::ZERO, lease));
                self.0.promote(other)?;
                rest(dice.between(Duration::ZERO, lease));
                wall.open()?;
                self.follow()
            }
            PAUSE => {
                self.0.members()[other].pause()?;
                rest(dice.between(lease / 4, lease * 2));
                self.0.members()[other].resume()?;
                self.0.await_settled()
            }
            _ => {
                self.0.members_mut()[other].crash()?;
                rest(dice.between(Duration::ZERO, lease));
                self.0.members_mut()[other].restart().map_err(io::Error::other)?;
                self.0.await_settled()
            }
        }
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers_after_failovers(self.0.primary(), killed)
    }
}

impl Tended {
    fn replica(&self, dice: &mut Dice) -> usize {
        let step = 1 + dice.below(REPLICAS as u64) as usize;
        (self.0.primary_index() + step) % (REPLICAS + 1)
    }

    /// All others follow whoever was promoted last.
    fn follow(&self) -> io::Result<()> {
        let mut others = (0..=REPLICAS).filter(|member| *member != self.0.primary_index());
        others.try_for_each(|member| self.0.demote(member))?;
        self.0.await_settled()
    }
}
