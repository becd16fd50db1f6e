//! MariaDB passes the suite; and MySQL, if `LEASEHOLD_MYSQLD` names its program.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod servers;

use leasehold_sql::{MySql, MySqlConfig};
use leasehold_testkit::{conformance::Fixture, servers::mysql as servers_of};

use self::servers::Shared;

static SERVER: Shared<servers_of::MySql> = Shared::new();

fn fixture(options: &str) -> Fixture {
    let server = SERVER.get(|| servers_of::MySql::start(servers_of::Brand::to_test()));
    let url = format!("{}{options}", server.url("mysql"));
    let open = move || {
        let config = MySqlConfig::from_url(&url).unwrap();
        async move { MySql::open(config).await.unwrap() }
    };
    Fixture::records(open).keep(server).without_bell()
}

leasehold_testkit::conformance!(mysql, real, fixture(""));

leasehold_testkit::conformance!(in_session, real, fixture("?session=5m"));
