//! Redlock: five servers that know nothing of each other, of which a majority grants.
//!
//! With every write on disk a minority may be gone, and a majority may come back, and nothing is granted twice. Without
//! persistence a majority that restarts has forgotten what it granted: that row is a hint, and shows it.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    redis::{Independent, Keeps, Setup},
};

use super::{Pack, redis_single};
use crate::{clock::rest, dice::Dice};

const KILL: &str = "minority killed and restarted";
const PAUSE: &str = "minority paused";
const LOSE: &str = "majority killed and restarted";
const HALT: &str = "majority paused";
const FORGET: &str = "majority killed, restarted empty";
const FORGET_ONE: &str = "one member killed, restarted empty";

const MEMBERS: usize = 5;
const MINORITY: usize = 2;
const MAJORITY: usize = 3;

struct Members {
    servers: Independent,
    faults: &'static [&'static str],
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    open(Keeps::EveryWrite, &[KILL, PAUSE, LOSE, HALT])
}

/// Members that have forgotten everything when they come back.
pub(super) fn start_empty() -> Result<Box<dyn Pack>, StartError> {
    open(Keeps::Nothing, &[FORGET, FORGET_ONE])
}

fn open(keeps: Keeps, faults: &'static [&'static str]) -> Result<Box<dyn Pack>, StartError> {
    let servers = Independent::start_as(MEMBERS, &Setup::new().with_keeps(keeps))?;
    Ok(Box::new(Members { servers, faults }))
}

impl Pack for Members {
    fn url(&self) -> String {
        self.servers.url()
    }

    fn version(&self) -> String {
        redis_single::version(&self.servers.members()[0])
    }

    fn faults(&self) -> &'static [&'static str] {
        self.faults
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let count = match fault {
            FORGET_ONE => 1,
            KILL | PAUSE => 1 + dice.below(MINORITY as u64) as usize,
            _ => MAJORITY + dice.below((MEMBERS - MAJORITY + 1) as u64) as usize,
        };
        let chosen = some(count, dice);
        match fault {
            PAUSE | HALT => self.pause(&chosen, dice.between(lease / 4, lease * 2)),
            // Those who have forgotten are dangerous while a lease from before goes on: no time is lost.
            FORGET | FORGET_ONE => self.restart(&chosen, Duration::ZERO),
            _ => self.restart(&chosen, dice.between(Duration::ZERO, lease)),
        }
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        let left = self.servers.members().iter().map(|member| redis_single::leftovers(member, killed));
        Ok(left.collect::<io::Result<Vec<_>>>()?.concat())
    }
}

impl Members {
    fn restart(&mut self, chosen: &[usize], down: Duration) -> io::Result<()> {
        for member in chosen {
            self.servers.members_mut()[*member].crash()?;
        }
        rest(down);
        for member in chosen {
            self.servers.members_mut()[*member].restart().map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// All that were paused go on, also if one of them could not be.
    fn pause(&self, chosen: &[usize], span: Duration) -> io::Result<()> {
        let paused = chosen.iter().try_for_each(|member| self.servers.members()[*member].pause());
        rest(span);
        let resumed = chosen.iter().map(|member| self.servers.members()[*member].resume());
        resumed.fold(paused, io::Result::and)
    }
}

/// So many different members.
fn some(count: usize, dice: &mut Dice) -> Vec<usize> {
    let mut members: Vec<usize> = (0..MEMBERS).collect();
    while members.len() > count {
        let at = dice.below(members.len() as u64) as usize;
        members.remove(at);
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_members_are_chosen_as_are_asked_for_and_each_once() {
        let mut dice = Dice::of(3);
        for count in 1..=MEMBERS {
            let mut chosen = some(count, &mut dice);
            chosen.dedup();
            assert_eq!(chosen.len(), count);
            assert!(chosen.iter().all(|member| *member < MEMBERS));
        }
    }
}
