//! PostgreSQL passes the suite, directly, in sessions and behind a pooler that lends sessions by the transaction.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod servers;

use leasehold_sql::{Postgres, PostgresConfig};
use leasehold_testkit::{conformance::Fixture, servers::postgres as servers_of};

use self::servers::Shared;

fn fixture<T: Send + Sync + 'static>(url: String, keep: T) -> Fixture {
    let open = move || {
        let config = PostgresConfig::from_url(&url).unwrap();
        async move { Postgres::open(config).await.unwrap() }
    };
    Fixture::records(open).keep(keep)
}

leasehold_testkit::conformance!(postgres, real, {
    static SERVER: Shared<servers_of::Postgres> = Shared::new();
    let server = SERVER.get(servers_of::Postgres::start);
    fixture(server.url("postgres"), server)
});

leasehold_testkit::conformance!(in_session, real, {
    static SERVER: Shared<servers_of::Postgres> = Shared::new();
    let server = SERVER.get(servers_of::Postgres::start);
    fixture(format!("{}?session=5m", server.url("postgres")), server)
});

leasehold_testkit::conformance!(pooled, slow, {
    static SERVERS: Shared<(servers_of::Pooler, servers_of::Postgres)> = Shared::new();
    let servers = SERVERS.get(|| {
        let server = servers_of::Postgres::start()?;
        Ok((servers_of::Pooler::start(&server)?, server))
    });
    fixture(servers.0.url("postgres"), servers).without_bell()
});
