//! SQLite passes the suite: every client of a case has a store of its own on one file, as processes would.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use leasehold_sql::{Sqlite, SqliteConfig};
use leasehold_testkit::conformance::Fixture;

leasehold_testkit::conformance!(sqlite, real, {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("locks.db");
    let open = move || {
        let config = SqliteConfig::new(&file);
        async move { Sqlite::open(config).await.unwrap() }
    };
    Fixture::records(open).keep(folder)
});
