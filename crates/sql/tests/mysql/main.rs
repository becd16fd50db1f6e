//! What is MySQL's own: how many round trips a lock costs, what its errors mean, and proofs in transactions.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod proof;
#[path = "../servers/mod.rs"]
mod servers;
mod sessions;
mod statements;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Client, Result, backend::Recorded};
use leasehold_sql::{MySql, MySqlConfig};
use leasehold_testkit::servers::mysql as servers_of;
use mysql_async::{Conn, prelude::Queryable as _};

use self::servers::Shared;

/// A database of its own on a server that tests share.
struct Place {
    server: Arc<servers_of::MySql>,
    database: String,
}

impl Place {
    async fn new() -> Self {
        static SERVER: Shared<servers_of::MySql> = Shared::new();
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let server = SERVER.get(|| servers_of::MySql::start(servers_of::Brand::to_test()));
        let database = format!("place{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut admin = Conn::from_url(server.url("mysql")).await.unwrap();
        admin.query_drop(format!("CREATE DATABASE {database}")).await.unwrap();
        admin.disconnect().await.unwrap();
        Self { server, database }
    }

    fn url(&self) -> String {
        self.server.url(&self.database)
    }

    async fn open(&self) -> Recorded<MySql> {
        open(&self.url()).await.unwrap()
    }

    async fn client(&self) -> Client {
        Client::builder(self.open().await).build()
    }

    /// How many sessions of this database wait for another one's row.
    async fn waiting_for_locks(&self) -> u64 {
        let count = "SELECT COUNT(*) FROM information_schema.innodb_trx t
                     JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
                     WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()";
        // The server renews this view only for those who have not looked for a tenth of a second.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let mut plain = self.plain().await;
        let counted = plain.query_first(count).await.unwrap().unwrap();
        plain.disconnect().await.unwrap();
        counted
    }

    /// A plain connection, as the user's own program has it.
    async fn plain(&self) -> Conn {
        Conn::from_url(self.url()).await.unwrap()
    }
}

async fn open(url: &str) -> Result<Recorded<MySql>> {
    MySql::open(MySqlConfig::from_url(url)?).await
}
