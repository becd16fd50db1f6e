//! One PostgreSQL, reached directly or through a pooler that lends sessions by the transaction.
//!
//! Directly, each worker has a wire of its own, which falls silent without a word: the connection is half open. A stranger
//! who locks rows in another order makes our statements victims of deadlocks: a trigger of his has every write of ours
//! look at a row that he locks first.

use std::{io, net::SocketAddr, time::Duration};

use leasehold_testkit::{
    faultline::Speech,
    servers::{
        StartError,
        postgres::{Pooler, Postgres},
    },
};
use tokio_postgres::{Client, Config, NoTls, error::SqlState};

use super::{
    Pack, again, is_left,
    operator::Operator,
    wires::{CUT_ONE, LATE, LONG, SHORT, STALL_ONE, SWALLOW, Wires},
};
use crate::{clock::rest, dice::Dice};

const KILL: &str = "server killed and restarted";
const PAUSE: &str = "server paused";
const DEADLOCK: &str = "deadlocks with a stranger";
const CANCEL: &str = "statements cancelled";
const TERMINATE: &str = "sessions terminated";
const READ_ONLY: &str = "server read-only";
const KILL_POOLER: &str = "pooler killed and restarted";
const PAUSE_POOLER: &str = "pooler paused";

const FAULTS: [&str; 12] =
    [KILL, PAUSE, DEADLOCK, CANCEL, TERMINATE, READ_ONLY, SHORT, LONG, STALL_ONE, CUT_ONE, SWALLOW, LATE];
const POOLED: [&str; 6] = [KILL_POOLER, PAUSE_POOLER, KILL, PAUSE, CANCEL, TERMINATE];

/// Every request about a lock names the table.
const REQUEST: &[u8] = b"leasehold_record";

/// A row that every write of ours looks at, after it has locked its own. Ours look for a deadlock when he surely waits.
const STRANGER: &str = "CREATE TABLE stranger (a int); INSERT INTO stranger VALUES (1);
    CREATE FUNCTION visit() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM FROM stranger FOR SHARE; RETURN NEW; END';
    CREATE TRIGGER visit BEFORE UPDATE ON leasehold_record FOR EACH ROW EXECUTE FUNCTION visit();
    ALTER DATABASE postgres SET deadlock_timeout = '60ms'";

/// He locks the other way round, and looks so late that he is seldom the victim.
const LOCK: &str =
    "BEGIN; SET LOCAL deadlock_timeout = '1s'; SELECT FROM stranger FOR UPDATE; SELECT pg_sleep(0.03);
    SELECT FROM leasehold_record FOR UPDATE; ROLLBACK";

/// All others.
const OTHERS: &str =
    "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

struct Direct {
    /// Before the server, because they end first.
    wires: Wires,
    server: Postgres,
    operator: Operator,
}

struct Pooled {
    pooler: Pooler,
    server: Postgres,
    operator: Operator,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let (server, operator) = (Postgres::start()?, Operator::new()?);
    let wires = Wires::to(server.address(), Speech::Pieces, REQUEST)?;
    operator.open_once(&url(server.address()))?;
    tell(&operator, &server, STRANGER)?;
    Ok(Box::new(Direct { wires, server, operator }))
}

pub(super) fn start_pooled() -> Result<Box<dyn Pack>, StartError> {
    let (server, operator) = (Postgres::start()?, Operator::new()?);
    let pooler = Pooler::start(&server)?;
    Ok(Box::new(Pooled { pooler, server, operator }))
}

impl Pack for Direct {
    fn url(&self) -> String {
        url(self.server.address())
    }

    fn url_for(&self, place: usize) -> String {
        url(self.wires.address(place))
    }

    fn version(&self) -> String {
        version(&self.operator, &self.server)
    }

    fn faults(&self) -> &'static [&'static str] {
        &FAULTS
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let (server, operator) = (&self.server, &self.operator);
        match fault {
            KILL => kill(&mut self.server, dice),
            PAUSE => pause(server, dice.between(lease / 4, lease * 2)),
            DEADLOCK => again(dice, || quarrel(operator, server)),
            CANCEL => again(dice, || cancel(operator, server)),
            TERMINATE => again(dice, || terminate(operator, server)),
            READ_ONLY => {
                read_only(operator, server, "on")?;
                rest(dice.between(lease / 4, lease * 3 / 2));
                read_only(operator, server, "off")
            }
            _ => {
                self.wires.inflict(fault, lease, dice);
                Ok(())
            }
        }
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        leftovers(&self.operator, &self.server, killed)
    }
}

impl Pack for Pooled {
    fn url(&self) -> String {
        url(self.pooler.address())
    }

    fn version(&self) -> String {
        version(&self.operator, &self.server)
    }

    fn faults(&self) -> &'static [&'static str] {
        &POOLED
    }

    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let (server, operator) = (&self.server, &self.operator);
        match fault {
            KILL_POOLER => {
                self.pooler.crash()?;
                rest(dice.between(Duration::ZERO, Duration::from_millis(1500)));
                self.pooler.restart().map_err(io::Error::other)
            }
            PAUSE_POOLER => {
                self.pooler.pause()?;
                rest(dice.between(lease / 4, lease * 2));
                self.pooler.resume()
            }
            KILL => kill(&mut self.server, dice),
            PAUSE => pause(server, dice.between(lease / 4, lease * 2)),
            CANCEL => again(dice, || cancel(operator, server)),
            _ => again(dice, || terminate(operator, server)),
        }
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        leftovers(&self.operator, &self.server, killed)
    }
}

fn url(address: SocketAddr) -> String {
    format!("postgres://postgres@{address}/postgres")
}

fn kill(server: &mut Postgres, dice: &mut Dice) -> io::Result<()> {
    server.crash()?;
    rest(dice.between(Duration::ZERO, Duration::from_millis(1500)));
    server.restart().map_err(io::Error::other)
}

fn pause(server: &Postgres, span: Duration) -> io::Result<()> {
    server.pause()?;
    rest(span);
    server.resume()
}

fn tell(operator: &Operator, server: &Postgres, words: &str) -> io::Result<()> {
    with(operator, server, async |client| client.batch_execute(words).await)
}

/// That he is the victim himself is no fault of the server.
fn quarrel(operator: &Operator, server: &Postgres) -> io::Result<()> {
    with(operator, server, async |client| match client.batch_execute(LOCK).await {
        Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => Ok(()),
        ended => ended,
    })
}

fn cancel(operator: &Operator, server: &Postgres) -> io::Result<()> {
    tell(operator, server, &format!("SELECT pg_cancel_backend(pid) {OTHERS}"))
}

fn terminate(operator: &Operator, server: &Postgres) -> io::Result<()> {
    tell(operator, server, &format!("SELECT pg_terminate_backend(pid) {OTHERS}"))
}

/// For all sessions, those that are open as well. They hear of it a moment later.
fn read_only(operator: &Operator, server: &Postgres, on: &str) -> io::Result<()> {
    tell(operator, server, &format!("ALTER SYSTEM SET default_transaction_read_only = {on}"))?;
    tell(operator, server, "SELECT pg_reload_conf()")
}

fn version(operator: &Operator, server: &Postgres) -> String {
    let version = with(operator, server, async |client| {
        let row = client.query_one("SHOW server_version", &[]).await?;
        row.try_get::<_, String>(0)
    });
    let version = version.unwrap_or_else(|_| "of unknown version".to_owned());
    format!("PostgreSQL {}", version.split(" (").next().unwrap_or_default())
}

/// A name that nobody uses has a row, and nobody in it.
fn leftovers(operator: &Operator, server: &Postgres, killed: &[String]) -> io::Result<Vec<String>> {
    let rows = with(operator, server, async |client| {
        let used = "SELECT name, record FROM leasehold_record WHERE record IS NOT NULL";
        let rows = client.query(used, &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<Vec<_>, _>>()
    })?;
    let left = rows.into_iter().filter(|(_, record): &(String, String)| is_left(record, killed));
    Ok(left.map(|(name, record)| format!("{name}: {record}")).collect())
}

fn with<T>(
    operator: &Operator,
    server: &Postgres,
    work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
) -> io::Result<T> {
    let mut config = Config::new();
    config.host(server.address().ip().to_string()).port(server.port()).user("postgres").dbname("postgres");
    operator.wait(async {
        let (client, connection) = config.connect(NoTls).await.map_err(io::Error::other)?;
        tokio::select! {
            done = work(&client) => done.map_err(io::Error::other),
            _ = connection => Err(io::Error::other("the server ended the operator's session")),
        }
    })
}
