//! Three members of one etcd: the leader killed, any member killed, a majority killed, history forgotten under those who
//! watch.
//!
//! A leader that is stopped and goes on is a row by itself, which is a hint: until it hears of the election it believes
//! that it leads, finds leases over that were renewed elsewhere, and has them revoked (etcd's issue 15247, mended in later
//! releases than Debian's). No client can prevent that; fences hold.

use std::{io, time::Duration};

use leasehold_testkit::servers::{StartError, etcd::Cluster};

use super::Pack;
use crate::{clock::rest, dice::Dice};

const KILL_LEADER: &str = "leader killed and restarted";
const PAUSE_LEADER: &str = "leader paused";
const KILL_ANY: &str = "member killed and restarted";
const KILL_MOST: &str = "majority killed and restarted";
const COMPACT: &str = "history compacted";

struct Members {
    cluster: Cluster,
    faults: &'static [&'static str],
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    open(&[KILL_LEADER, KILL_ANY, KILL_MOST, COMPACT])
}

pub(super) fn start_stopping() -> Result<Box<dyn Pack>, StartError> {
    open(&[PAUSE_LEADER])
}

fn open(faults: &'static [&'static str]) -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Members { cluster: Cluster::start()?, faults }))
}

impl Members {
    fn any(&self, dice: &mut Dice) -> usize {
        dice.below(self.cluster.members().len() as u64) as usize
    }

    /// Killed, and after a while started again: all of them before any is waited for, as they wait for each other.
    fn kill(&mut self, who: &[usize], dice: &mut Dice) -> io::Result<()> {
        for at in who {
            self.cluster.members_mut()[*at].crash()?;
        }
        rest(dice.between(Duration::ZERO, Duration::from_millis(1500)));
        self.cluster.restart(who)
    }

    fn compact(&self) -> io::Result<()> {
        let member = &self.cluster.members()[self.cluster.leader()?];
        let answer = member.ask("/v3/kv/range", r#"{"key":"AA=="}"#)?;
        let revision = answer.split_once("\"revision\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let revision = revision.ok_or_else(|| io::Error::other("an answer without a revision"))?.0;
        // That nothing happened since the last time is no fault.
        drop(member.ask("/v3/kv/compaction", &format!("{{\"revision\":\"{revision}\"}}")));
        Ok(())
    }
}

impl Pack for Members {
    fn url(&self) -> String {
        self.cluster.url()
    }

    fn version(&self) -> String {
        let answer = self.cluster.members()[0].ask("/v3/maintenance/status", "{}").unwrap_or_default();
        let version = answer.split_once("\"version\":\"").and_then(|(_, rest)| rest.split_once('"'));
        format!("etcd {}", version.map_or("of unknown version", |(version, _)| version))
    }

    fn faults(&self) -> &'static [&'static str] {
        self.faults
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        match fault {
            KILL_LEADER => {
                let leader = self.cluster.leader()?;
                self.kill(&[leader], dice)
            }
            PAUSE_LEADER => {
                let leader = self.cluster.leader()?;
                self.cluster.members()[leader].pause()?;
                rest(dice.between(lease / 4, lease * 2));
                self.cluster.members()[leader].resume()
            }
            KILL_ANY => {
                let any = self.any(dice);
                self.kill(&[any], dice)
            }
            KILL_MOST => {
                let spared = self.any(dice);
                let most: Vec<usize> = (0..self.cluster.members().len()).filter(|at| *at != spared).collect();
                self.kill(&most, dice)
            }
            _ => {
                for _ in 0..=dice.below(10) {
                    self.compact()?;
                    rest(dice.between(Duration::from_millis(10), Duration::from_millis(150)));
                }
                Ok(())
            }
        }
    }

    /// Everything under a name ends with its holder's lease; marks of forced releases end by themselves.
    fn leftovers(&self, _killed: &[String]) -> io::Result<Vec<String>> {
        // From "leasehold/name/" to "leasehold/name0".
        let range = r#"{"key":"bGVhc2Vob2xkL25hbWUv","range_end":"bGVhc2Vob2xkL25hbWUw"}"#;
        let answer = self.cluster.members()[self.cluster.leader()?].ask("/v3/kv/range", range)?;
        let keys = answer.split("\"key\":\"").skip(1).filter_map(|rest| rest.split('"').next());
        Ok(keys.map(|key| format!("{key} (base64)")).collect())
    }
}
