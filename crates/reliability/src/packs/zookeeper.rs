//! ZooKeeper, three servers: the leader is killed or paused, so is any other; sessions end under workers that are paused.
//!
//! A grant lives by its session and is proved to the leader, so nothing of this may let two hold one name.

use std::{io, time::Duration};

use leasehold_testkit::servers::{
    StartError,
    zookeeper::{Ensemble, ZooKeeper},
};

use super::Pack;
use crate::{clock::rest, dice::Dice};

const KILL_LEADER: &str = "leader killed, election, restarted";
const PAUSE_LEADER: &str = "leader paused, election, resumed";
const KILL_MEMBER: &str = "a server killed, restarted";
const PAUSE_MEMBER: &str = "a server paused, resumed";

struct Three(Ensemble);

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Three(Ensemble::start(3)?)))
}

impl Pack for Three {
    /// Sessions are a little more than twice the lease of a run: no lease is longer than half of one.
    fn url(&self) -> String {
        format!("{}?session_timeout=5s&command_timeout=1s", self.0.url())
    }

    fn version(&self) -> String {
        let said = self.0.members()[0].word("srvr").unwrap_or_default();
        let version = said.lines().find_map(|line| line.strip_prefix("Zookeeper version: "));
        format!("ZooKeeper {}", version.and_then(|version| version.split(['-', ',']).next()).unwrap_or("?"))
    }

    fn faults(&self) -> &'static [&'static str] {
        &[KILL_LEADER, PAUSE_LEADER, KILL_MEMBER, PAUSE_MEMBER]
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let leader = self.0.leader()?;
        let member = match fault {
            KILL_LEADER | PAUSE_LEADER => leader,
            _ => dice.below(3) as usize,
        };
        if matches!(fault, KILL_LEADER | KILL_MEMBER) {
            self.0.members_mut()[member].crash()?;
            rest(dice.between(Duration::ZERO, lease));
            self.0.members_mut()[member].come_back().map_err(io::Error::other)?;
        } else {
            self.0.members()[member].pause()?;
            rest(dice.between(lease / 2, lease * 2));
            self.0.members()[member].resume()?;
        }
        self.0.members().iter().try_for_each(ZooKeeper::await_serving)
    }

    /// The leader lists every ephemeral node. Those of the killed go with their sessions.
    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        let dump = self.0.members()[self.0.leader()?].word("dump")?;
        let nodes = dump.lines().map(str::trim).filter(|line| line.starts_with("/leasehold/"));
        let left =
            nodes.filter(|node| !node.contains("/~sessions/") && !killed.iter().any(|id| node.contains(id)));
        Ok(left.map(str::to_owned).collect())
    }
}
