//! A session of ours in PostgreSQL: an advisory lock on a connection of its own, with keepalives that the server sends.
//!
//! Behind a pooler that lends connections by the transaction the lock would be taken in somebody else's session, and stay
//! there: it is found out when the session begins, and refused.

use std::time::Duration;

use leasehold_core::{ClientId, Error, ErrorKind, Operation};
use tokio_postgres::{SimpleQueryMessage, types::Type};

use super::{
    PostgresDatabase,
    connection::{Connection, Connector},
    database::{only, strange},
    error::failed,
};
use crate::server::{Tried, pool::Pooled as _, session::Linker, url::config};

/// Whether this is a standby, whose locks are its own, and which of these keys somebody has locked.
const LIVING: &str = "SELECT pg_is_in_recovery(), array(SELECT key FROM unnest($1) key WHERE EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = (key >> 32 & 4294967295)::oid AND objid = (key & 4294967295)::oid))";

/// How to take the lock of a session.
#[derive(Debug)]
pub(super) struct AdvisoryLock {
    pub(super) connector: Connector,
    pub(super) patience: Duration,
}

/// A connection that has it, and the server's process behind that.
pub(super) struct Link {
    connection: Connection,
    process: String,
}

impl Linker for AdvisoryLock {
    type Link = Link;

    async fn link(&self, own: ClientId) -> Tried<Link> {
        let (connection, key) = (self.connector.connect().await?, key(own));
        let take = format!("SELECT pg_try_advisory_lock({key}), pg_backend_pid(), pg_is_in_recovery()");
        let taken = ask(&connection, &take).await?;
        if taken.get(2).is_none_or(|standby| standby != "f") {
            return Err(standby().into());
        }
        if taken.first().is_none_or(|taken| taken != "t") {
            let message = "the server does not let us begin a session; try again";
            return Err(Error::new(ErrorKind::Unavailable, Operation::Connect, message).into());
        }
        let link = Link { connection, process: taken.into_iter().nth(1).unwrap_or_default() };
        self.refuse_pooler(&link, key).await?;
        ask(&link.connection, &self.keepalives()).await?;
        Ok(link)
    }

    async fn beat(&self, link: &mut Link, _own: ClientId) -> Tried<bool> {
        let process = ask(&link.connection, "SELECT pg_backend_pid()").await?;
        Ok(process.first() == Some(&link.process))
    }

    async fn ended(&self, link: &mut Link) {
        link.connection.ended().await;
    }

    fn is_closed(&self, link: &Link) -> bool {
        !link.connection.is_alive()
    }
}

impl AdvisoryLock {
    /// Two connections of a server never have one process, and one connection never has two. A pooler lends the process that
    /// is free to who asks next, so another connection is given ours, or keeps it from us.
    async fn refuse_pooler(&self, link: &Link, key: i64) -> Tried<()> {
        let other = self.connector.connect().await?;
        let theirs =
            ask(&other, &format!("BEGIN; SELECT pg_try_advisory_lock({key}), pg_backend_pid()")).await?;
        let ours = ask(&link.connection, "SELECT pg_backend_pid()").await?;
        let is_ours = ours.first() == Some(&link.process);
        if is_ours && theirs.first().is_some_and(|taken| taken == "f") && theirs.get(1) != ours.first() {
            return Ok(());
        }
        // Whichever process has it now, once or twice, is not to keep it.
        for connection in [&other, &link.connection] {
            ask(connection, &format!("SELECT pg_advisory_unlock({key}), pg_advisory_unlock({key})")).await?;
        }
        Err(pooled().into())
    }

    /// The server gives us up after this long without a sign of life, and not before.
    fn keepalives(&self) -> String {
        let (seconds, millis) = (self.patience.as_secs(), self.patience.as_millis());
        let half = seconds.div_ceil(2);
        format!(
            "SET tcp_keepalives_idle = {half}; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = {half};
             SET tcp_user_timeout = {millis}; SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0;
             SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"
        )
    }
}

/// Those of these sessions that live.
pub(super) async fn living(database: &PostgresDatabase, sessions: &[ClientId]) -> Tried<Vec<ClientId>> {
    let keys: Vec<i64> = sessions.iter().copied().map(key).collect();
    let rows = database.ask_primary(LIVING, &[(&keys, Type::INT8_ARRAY)]).await?;
    let locked: Vec<i64> = only(&rows)?.try_get(1).map_err(strange)?;
    Ok(sessions.iter().copied().filter(|session| locked.contains(&key(*session))).collect())
}

/// The key of a session's lock: half of its id, which is random.
fn key(session: ClientId) -> i64 {
    let digits = session.to_string().replace('-', "");
    u64::from_str_radix(&digits[..16], 16).unwrap_or_default().cast_signed()
}

/// The columns of the last row.
async fn ask(connection: &Connection, statements: &str) -> Tried<Vec<String>> {
    let messages = connection.client.simple_query(statements).await.map_err(failed)?;
    let row = messages.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(row.map_or_else(Vec::new, |row| {
        (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect()
    }))
}

/// It may have been the primary when we connected, and another is now.
pub(super) fn standby() -> Error {
    let message = "the server is a standby, which cannot tell who holds; connect to the primary";
    Error::new(ErrorKind::Unavailable, Operation::Inspect, message)
}

fn pooled() -> Error {
    config(
        "a pooler that lends connections by the transaction stands before the server: a session cannot last there; \
         connect to the server itself, or leave session out of the store URL, since leases need none",
    )
}
