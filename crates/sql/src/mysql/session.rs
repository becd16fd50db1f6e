//! A session of ours in MySQL: a lock of `GET_LOCK` on a connection of its own, which the server ends when it hears nothing.
//!
//! Such locks are one server's: on Galera, where others answer from other nodes, it is refused.

use std::time::Duration;

use leasehold_core::{ClientId, Error, ErrorKind, Operation};
use mysql_async::Opts;

use super::{MySqlDatabase, connection::Connection, database::value};
use crate::server::{Tried, pool::Pooled as _, session::Linker, url::config};

/// Whether the server takes no writes, as a replica; locks of sessions are each server's own. Newer ones say it in words.
const READ_ONLY: &str = "@@global.read_only NOT IN ('0', 'OFF')";

/// How to take the lock of a session.
#[derive(Debug)]
pub(super) struct NamedLock {
    pub(super) options: Opts,
    pub(super) connect_timeout: Duration,
    pub(super) patience: Duration,
}

impl Linker for NamedLock {
    type Link = Connection;

    async fn link(&self, own: ClientId) -> Tried<Connection> {
        let mut connection = Connection::connect(self.options.clone(), self.connect_timeout).await?;
        refuse_galera(&mut connection).await?;
        let take = format!("SELECT GET_LOCK('{}', 0)", name(own));
        if number(&mut connection, &take).await? != Some(1) {
            let message = "the server does not let us begin a session; try again";
            return Err(Error::new(ErrorKind::Unavailable, Operation::Connect, message).into());
        }
        // From now on it ends us after this long without a request, and not before.
        let seconds = self.patience.as_secs();
        connection.ask(&format!("SET SESSION wait_timeout = {seconds}")).await?;
        let mut other = Connection::connect(self.options.clone(), self.connect_timeout).await?;
        if number(&mut other, &take).await? == Some(1) {
            return Err(shared().into());
        }
        Ok(connection)
    }

    async fn beat(&self, link: &mut Connection, own: ClientId) -> Tried<bool> {
        let ours = format!("SELECT IS_USED_LOCK('{}') = CONNECTION_ID(), {READ_ONLY}", name(own));
        let answers = link.ask(&ours).await?;
        let Some(row) = answers.first().and_then(|answer| answer.rows.first()) else { return Ok(false) };
        if value::<bool>(row, 1)? {
            return Err(replica().into());
        }
        Ok(value::<Option<bool>>(row, 0)?.unwrap_or_default())
    }

    /// The client does not look at a connection that nobody asks anything of.
    async fn ended(&self, _link: &mut Connection) {
        std::future::pending::<()>().await;
    }

    fn is_closed(&self, link: &Connection) -> bool {
        !link.is_alive()
    }
}

/// Those of these sessions that live.
pub(super) async fn living(database: &MySqlDatabase, sessions: &[ClientId]) -> Tried<Vec<ClientId>> {
    let asked: Vec<_> =
        sessions.iter().map(|own| format!("IS_USED_LOCK('{}') IS NULL", name(*own))).collect();
    let answers = database.ask_primary(&format!("SELECT {}, {READ_ONLY}", asked.join(", "))).await?;
    let row = answers.first().and_then(|answer| answer.rows.first());
    let mut living = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        // Who cannot be asked about is not dead.
        if row.map(|row| value::<bool>(row, at)).transpose()? != Some(true) {
            living.push(*session);
        }
    }
    Ok(living)
}

async fn refuse_galera(connection: &mut Connection) -> Tried<()> {
    let answers = connection.ask("SHOW VARIABLES LIKE 'wsrep_on'").await?;
    let row = answers.first().and_then(|answer| answer.rows.first());
    if row.map(|row| value::<String>(row, 1)).transpose()?.is_some_and(|on| on == "ON") {
        let message = "locks of sessions are each node's own on Galera; leave session out of the store URL";
        return Err(config(message).into());
    }
    Ok(())
}

async fn number(connection: &mut Connection, question: &str) -> Tried<Option<i64>> {
    let answers = connection.ask(question).await?;
    let row = answers.first().and_then(|answer| answer.rows.first());
    Ok(row.map(|row| value::<Option<i64>>(row, 0)).transpose()?.flatten())
}

fn name(session: ClientId) -> String {
    format!("leasehold:{session}")
}

/// It may have been the primary when we connected, and another is now.
pub(super) fn replica() -> Error {
    let message = "the server is read-only, as a replica that cannot tell who holds; connect to the primary";
    Error::new(ErrorKind::Unavailable, Operation::Inspect, message)
}

fn shared() -> Error {
    config(
        "a proxy that lends connections to several stands before the server: a session cannot last there; connect to \
         the server itself, or leave session out of the store URL, since leases need none",
    )
}
