//! One MariaDB, with a wire of its own for each worker, which falls silent without a word: the connection is half open.
//!
//! A stranger who locks rows in another order than ours, and has written more, makes our statements victims of deadlocks.

use std::{io, net::SocketAddr, time::Duration};

use leasehold_testkit::{
    faultline::Speech,
    servers::{
        StartError,
        mysql::{Brand, MySql},
    },
};
use mysql_async::{Conn, prelude::Queryable as _};

use super::{
    Pack, again, is_left,
    operator::Operator,
    wires::{CUT_ONE, LATE, LONG, SHORT, STALL_ONE, SWALLOW, Wires},
};
use crate::{clock::rest, dice::Dice};

const KILL: &str = "server killed and restarted";
const PAUSE: &str = "server paused";
const DEADLOCK: &str = "deadlocks with a stranger";
const CANCEL: &str = "KILL QUERY";
const TERMINATE: &str = "KILL";
const READ_ONLY: &str = "server read-only";

/// Every request about a lock names the table.
const REQUEST: &[u8] = b"leasehold_record";

/// Root may write to a read-only server, so workers are somebody else.
const SETUP: [&str; 4] = [
    "CREATE DATABASE locks",
    "CREATE USER worker",
    "GRANT ALL ON locks.* TO worker",
    "CREATE TABLE locks.stranger (a INT) ENGINE = InnoDB",
];

/// Ours lock the floor first, then the row. The server ends the transaction that has written less.
const LOCK: [&str; 6] = [
    "START TRANSACTION",
    "INSERT INTO locks.stranger VALUES (1), (2), (3), (4), (5), (6), (7), (8)",
    "SELECT 1 FROM locks.leasehold_record FOR UPDATE",
    "DO SLEEP(0.03)",
    "SELECT 1 FROM locks.leasehold_meta WHERE name = 'floor' FOR UPDATE",
    "ROLLBACK",
];

struct Direct {
    /// Before the server, because they end first.
    wires: Wires,
    server: MySql,
    operator: Operator,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let (server, operator) = (MySql::start(Brand::MariaDb)?, Operator::new()?);
    let wires = Wires::to(server.address(), Speech::Pieces, REQUEST)?;
    let pack = Direct { wires, server, operator };
    pack.tell(&SETUP)?;
    pack.operator.open_once(&pack.url())?;
    Ok(Box::new(pack))
}

impl Pack for Direct {
    fn url(&self) -> String {
        url(self.server.address())
    }

    fn url_for(&self, place: usize) -> String {
        url(self.wires.address(place))
    }

    fn version(&self) -> String {
        let version = self.ask("SELECT VERSION()").ok().and_then(|rows| rows.into_iter().next());
        let version = version.unwrap_or_else(|| "of unknown version".to_owned());
        format!("MariaDB {}", version.split('-').next().unwrap_or_default())
    }

    fn faults(&self) -> &'static [&'static str] {
        &[KILL, PAUSE, DEADLOCK, CANCEL, TERMINATE, READ_ONLY, SHORT, LONG, STALL_ONE, CUT_ONE, SWALLOW, LATE]
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
            DEADLOCK => again(dice, || self.tell(&LOCK)),
            CANCEL => again(dice, || self.end_all(CANCEL)),
            TERMINATE => again(dice, || self.end_all(TERMINATE)),
            READ_ONLY => {
                self.tell(&["SET GLOBAL read_only = ON"])?;
                rest(dice.between(lease / 4, lease * 3 / 2));
                self.tell(&["SET GLOBAL read_only = OFF"])
            }
            _ => {
                self.wires.inflict(fault, lease, dice);
                Ok(())
            }
        }
    }

    /// A name that nobody uses has a row, and nobody in it.
    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        let used = "SELECT CONCAT(name, ': ', record) FROM locks.leasehold_record WHERE record IS NOT NULL";
        Ok(self.ask(used)?.into_iter().filter(|record| is_left(record, killed)).collect())
    }
}

impl Direct {
    /// Says these, one after the other, in one session.
    fn tell(&self, words: &[&str]) -> io::Result<()> {
        self.with(async |session| {
            for word in words {
                session.query_drop(*word).await?;
            }
            Ok(())
        })
    }

    /// The first column of the answer.
    fn ask(&self, words: &str) -> io::Result<Vec<String>> {
        self.with(async |session| session.query(words).await)
    }

    /// `KILL` or `KILL QUERY` of all that workers do.
    fn end_all(&self, verb: &str) -> io::Result<()> {
        self.with(async |session| {
            let sessions = "SELECT id FROM information_schema.processlist WHERE user = 'worker'";
            let sessions: Vec<u64> = session.query(sessions).await?;
            for id in sessions {
                // It may have ended by itself.
                drop(session.query_drop(format!("{verb} {id}")).await);
            }
            Ok(())
        })
    }

    fn with<T>(&self, work: impl AsyncFnOnce(&mut Conn) -> mysql_async::Result<T>) -> io::Result<T> {
        self.operator.wait(async {
            let session = Conn::from_url(self.server.url("mysql")).await;
            let mut session = session.map_err(io::Error::other)?;
            let done = work(&mut session).await.map_err(io::Error::other)?;
            // It is over either way.
            drop(session.disconnect().await);
            Ok(done)
        })
    }
}

fn url(address: SocketAddr) -> String {
    format!("mysql://worker@{address}/locks")
}
