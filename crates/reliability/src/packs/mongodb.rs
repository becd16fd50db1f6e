//! MongoDB: a replica set of three whose primary steps down, is killed, is stopped and goes on, or cannot be reached by
//! anybody; and a single server behind bad wires.

use std::{io, net::SocketAddr, time::Duration};

use leasehold_testkit::{
    faultline::Speech,
    servers::{
        StartError,
        mongodb::{Mongodb, ReplicaSet, Value, fields},
    },
};

use super::{
    Pack, is_left,
    wires::{CUT_ONE, LATE, LONG, SHORT, STALL_ONE, SWALLOW, Wires},
};
use crate::{
    clock::rest,
    dice::Dice,
    enclosure::{From, Wall, is_enclosed},
};

const STEP_DOWN: &str = "primary steps down";
const KILL_PRIMARY: &str = "primary killed and restarted";
const PAUSE_PRIMARY: &str = "primary paused";
const KILL_MEMBER: &str = "a secondary killed and restarted";
const PAUSE_MEMBER: &str = "a secondary paused";
const PART: &str = "primary out of everybody's reach";

const KILL: &str = "server killed and restarted";
const PAUSE: &str = "server paused";

/// Every step on a lock is this command.
const REQUEST: &[u8] = b"findAndModify";

/// Shorter than usual, as a lease of a run is.
const OPTIONS: &str = "command_timeout=5s&serverSelectionTimeoutMS=5000&connectTimeoutMS=5000";

/// The driver keeps up to ten connections to each member, and two more to watch it.
const CONNECTIONS: u64 = 12;

struct Set(ReplicaSet);

struct Single {
    /// Before the server, because they end first.
    wires: Wires,
    server: Mongodb,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    Ok(Box::new(Set(ReplicaSet::start()?)))
}

pub(super) fn start_single() -> Result<Box<dyn Pack>, StartError> {
    let server = Mongodb::start()?;
    Ok(Box::new(Single { wires: Wires::to(server.address(), Speech::Pieces, REQUEST)?, server }))
}

impl Pack for Set {
    fn url(&self) -> String {
        format!("{}&{OPTIONS}", self.0.url())
    }

    fn version(&self) -> String {
        version(&self.0.members()[0])
    }

    fn faults(&self) -> &'static [&'static str] {
        let faults: &[&str] = &[STEP_DOWN, KILL_PRIMARY, PAUSE_PRIMARY, KILL_MEMBER, PAUSE_MEMBER, PART];
        if is_enclosed() { faults } else { &faults[..5] }
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let primary = self.0.elected()?;
        let members = self.0.members().len();
        let member = (primary + 1 + dice.below(members as u64 - 1) as usize) % members;
        match fault {
            STEP_DOWN => drop(self.0.step_down()?),
            KILL_PRIMARY | KILL_MEMBER => {
                let at = if fault == KILL_PRIMARY { primary } else { member };
                self.0.members_mut()[at].crash()?;
                rest(dice.between(Duration::ZERO, lease * 2));
                self.0.members_mut()[at].restart().map_err(io::Error::other)?;
            }
            PAUSE_PRIMARY | PAUSE_MEMBER => {
                let at = if fault == PAUSE_PRIMARY { primary } else { member };
                self.0.members()[at].pause()?;
                rest(dice.between(lease / 2, lease * 3));
                self.0.members()[at].resume()?;
            }
            _ => {
                // It still reaches the others, and believes that it leads until it hears of another.
                let wall = Wall::around(self.0.members()[primary].port(), From::Everybody)?;
                rest(dice.between(lease / 2, lease * 3));
                wall.open()?;
            }
        }
        self.0.settled()
    }

    fn files(&self) -> u64 {
        CONNECTIONS * self.0.members().len() as u64
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        leftovers(&self.0.members()[self.0.elected()?], killed)
    }
}

impl Pack for Single {
    fn url(&self) -> String {
        url(self.server.address())
    }

    fn url_for(&self, place: usize) -> String {
        url(self.wires.address(place))
    }

    fn version(&self) -> String {
        version(&self.server)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[KILL, PAUSE, SHORT, LONG, STALL_ONE, CUT_ONE, SWALLOW, LATE]
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        match fault {
            KILL => {
                self.server.crash()?;
                rest(dice.between(Duration::ZERO, Duration::from_millis(1500)));
                self.server.restart().map_err(io::Error::other)
            }
            PAUSE => {
                self.server.pause()?;
                rest(dice.between(lease / 4, lease * 2));
                self.server.resume()
            }
            _ => {
                self.wires.inflict(fault, lease, dice);
                Ok(())
            }
        }
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        leftovers(&self.server, killed)
    }
}

fn url(address: SocketAddr) -> String {
    format!("mongodb://{address}/?directConnection=true&{OPTIONS}")
}

fn version(server: &Mongodb) -> String {
    let answer = server.demand(&fields([("buildInfo", 1.into()), ("$db", "admin".into())])).ok();
    let version = answer.as_ref().and_then(|answer| answer.get("version")).and_then(Value::text);
    format!("MongoDB {}", version.unwrap_or("of unknown version"))
}

/// A name that nobody uses may have a document, and nobody in it.
fn leftovers(server: &Mongodb, killed: &[String]) -> io::Result<Vec<String>> {
    let all = fields([("find", "locks".into()), ("batchSize", 100_000.into()), ("$db", "leasehold".into())]);
    let answer = server.demand(&all)?;
    let documents = answer.get("cursor").and_then(|cursor| cursor.get("firstBatch"));
    let Some(Value::List(documents)) = documents else {
        return Err(io::Error::other("an answer without documents"));
    };
    let left = documents.iter().map(|document| format!("{document:?}"));
    Ok(left.filter(|document| is_left(document, killed)).collect())
}
