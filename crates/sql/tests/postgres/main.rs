//! What is PostgreSQL's own: how many statements a lock costs, what its errors mean, and proofs in transactions.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod half_open;
mod proof;
#[path = "../servers/mod.rs"]
mod servers;
mod sessions;
mod statements;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use leasehold_core::{Client, Result, backend::Recorded};
use leasehold_sql::{Postgres, PostgresConfig};
use leasehold_testkit::servers::postgres as servers_of;

use self::servers::Shared;

/// A database of its own on a server that tests share.
struct Place {
    server: Arc<servers_of::Postgres>,
    database: String,
}

impl Place {
    async fn new() -> Self {
        static SERVER: Shared<servers_of::Postgres> = Shared::new();
        Self::on(SERVER.get(servers_of::Postgres::start)).await
    }

    async fn on(server: Arc<servers_of::Postgres>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let database = format!("place{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Self { server, database };
        let admin = connect(&place.server.url("postgres")).await;
        admin.batch_execute(&format!("CREATE DATABASE {}", place.database)).await.unwrap();
        place
    }

    fn url(&self) -> String {
        self.server.url(&self.database)
    }

    async fn open(&self) -> Recorded<Postgres> {
        open(&self.url()).await.unwrap()
    }

    async fn client(&self) -> Client {
        Client::builder(self.open().await).build()
    }

    /// A plain connection that can be asked what the server was asked.
    async fn counting(&self) -> tokio_postgres::Client {
        let plain = self.plain().await;
        plain.batch_execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
        plain
    }

    /// A plain connection, as the user's own program has it.
    async fn plain(&self) -> tokio_postgres::Client {
        connect(&self.url()).await
    }
}

/// How many sessions of this database wait for another one's row.
async fn waiting_for_locks(plain: &tokio_postgres::Client) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    plain.query_one(count, &[]).await.unwrap().get(0)
}

async fn open(url: &str) -> Result<Recorded<Postgres>> {
    Postgres::open(PostgresConfig::from_url(url)?).await
}

#[expect(clippy::disallowed_methods, reason = "it ends with the test")]
async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
