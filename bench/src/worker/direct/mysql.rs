//! MySQL and MariaDB: a row that nobody has is taken by one request, on the server's clock and with the next fence, and
//! given back by another on condition of its version. The row is as ours is: a new one begins above those that were
//! removed, and all can be found that are due for that.
//!
//! An upsert says nothing of the row, so its request has a look behind it, as ours has.

use std::sync::Arc;

use leasehold_workload::{Ask, Lock, Peer};
use mysql_async::{Conn, Opts, prelude::Queryable};
use tokio::sync::Mutex;

use super::{record, text};

const SETUP: &str = "CREATE TABLE IF NOT EXISTS bare (
    name VARBINARY(255) PRIMARY KEY, version BIGINT UNSIGNED NOT NULL, fence BIGINT UNSIGNED NOT NULL,
    moment BIGINT NOT NULL, due BIGINT, record MEDIUMBLOB, KEY bare_due (due)) ENGINE=InnoDB";

const FLOOR: &str = "CREATE TABLE IF NOT EXISTS bare_floor (name VARBINARY(16) PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB";

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
        for setup in [SETUP, FLOOR, "INSERT IGNORE INTO bare_floor VALUES ('floor', 0)"] {
            connection.query_drop(setup).await.map_err(text)?;
        }
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
            "INSERT INTO bare
             SELECT '{name}', m.value + 1, m.value + 1, {NOW}, (({NOW} + 90000000) DIV 600000000 + 1) * 600000000, '{record}'
             FROM bare_floor m WHERE m.name = 'floor' LOCK IN SHARE MODE
             ON DUPLICATE KEY UPDATE
               version = IF(bare.record IS NULL, bare.version + 1, bare.version),
               fence = IF(bare.record IS NULL, bare.fence + 1, bare.fence),
               moment = IF(bare.record IS NULL, VALUES(moment), bare.moment),
               due = IF(bare.record IS NULL, VALUES(due), bare.due),
               record = IF(bare.record IS NULL, VALUES(record), bare.record);
             SELECT r.version, r.fence, r.moment, r.record, {NOW} FROM bare_floor m LEFT JOIN bare r ON r.name = '{name}'
             WHERE m.name = 'floor'"
        );
        let mut connection = self.connection.lock().await;
        let mut answers = connection.query_iter(request).await.map_err(text)?;
        let changed = answers.affected_rows();
        answers.collect::<mysql_async::Row>().await.map_err(text)?;
        let rows: Vec<(u64, u64, i64, Vec<u8>, i64)> = answers.collect().await.map_err(text)?;
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
