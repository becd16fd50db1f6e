//! MySQL and MariaDB: a row that nobody has is taken by one request, on the server's clock and with the next fence, and
//! given back by another on condition of its version.
//!
//! An upsert says nothing of the row, so its request has a look behind it, as ours has.

use std::sync::Arc;

use leasehold_workload::{Ask, Lock, Peer};
use mysql_async::{Conn, Opts, prelude::Queryable};
use tokio::sync::Mutex;

use super::{record, text};

const SETUP: &str = "CREATE TABLE IF NOT EXISTS bare (
    name VARBINARY(255) PRIMARY KEY, version BIGINT UNSIGNED NOT NULL, fence BIGINT UNSIGNED NOT NULL,
    moment BIGINT NOT NULL, record MEDIUMBLOB) ENGINE=InnoDB";

const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

pub(super) struct MySql(Arc<Mutex<Conn>>);

#[derive(Clone)]
pub(super) struct Named {
    connection: Arc<Mutex<Conn>>,
    name: String,
}

impl Peer for MySql {
    type Lock = Named;

    fn version() -> String {
        "mysql_async".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let mut connection = Conn::new(Opts::from_url(&ask.url).map_err(text)?).await.map_err(text)?;
        connection.query_drop(SETUP).await.map_err(text)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    fn lock(&self, name: &str) -> Named {
        Named { connection: self.0.clone(), name: name.to_owned() }
    }
}

impl Lock for Named {
    type Held = u64;

    async fn acquire(&self) -> Result<u64, String> {
        let (name, record) = (&self.name, record());
        let request = format!(
            "INSERT INTO bare VALUES ('{name}', 1, 1, {NOW}, '{record}') ON DUPLICATE KEY UPDATE
               version = IF(record IS NULL, version + 1, version), fence = IF(record IS NULL, fence + 1, fence),
               moment = IF(record IS NULL, {NOW}, moment), record = IF(record IS NULL, VALUES(record), record);
             SELECT version, fence, moment, record FROM bare WHERE name = '{name}'"
        );
        let mut connection = self.connection.lock().await;
        let mut answers = connection.query_iter(request).await.map_err(text)?;
        let changed = answers.affected_rows();
        answers.collect::<mysql_async::Row>().await.map_err(text)?;
        let rows: Vec<(u64, u64, i64, Vec<u8>)> = answers.collect().await.map_err(text)?;
        match rows.first() {
            Some((version, ..)) if changed > 0 => Ok(*version),
            _ => Err("somebody else has the row".to_owned()),
        }
    }

    async fn release(&self, version: u64) -> Result<(), String> {
        let name = &self.name;
        let request = format!(
            "UPDATE bare SET version = version + 1, record = NULL WHERE name = '{name}' AND version = {version}"
        );
        let mut connection = self.connection.lock().await;
        connection.query_drop(request).await.map_err(text)?;
        if connection.affected_rows() == 1 { Ok(()) } else { Err("the row was not ours".to_owned()) }
    }
}
