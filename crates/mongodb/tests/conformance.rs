//! MongoDB passes the suite, alone and as a replica set: real servers, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{sync::Arc, time::Duration};

use leasehold_mongodb::{Mongodb, MongodbConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{Shared, mongodb as servers},
};

/// A fixture whose clients connect to this URL for as long as these servers run.
fn fixture<T: Send + Sync + 'static>(url: String, servers: Arc<T>) -> Fixture {
    let records = Fixture::records(move || {
        let config = MongodbConfig::from_url(&url).unwrap();
        async move { Mongodb::open(config).await.unwrap() }
    });
    records.keep(servers)
}

leasehold_testkit::conformance!(single, real, {
    static SERVER: Shared<servers::Mongodb> = Shared::new();
    let server = SERVER.get(servers::Mongodb::start);
    fixture(server.url(), server).without_bell()
});

leasehold_testkit::conformance!(replica_set, slow, {
    static SERVERS: Shared<servers::ReplicaSet> = Shared::new();
    // Elections are another test's business: a busy machine is not to begin one.
    let servers = SERVERS.get(|| servers::ReplicaSet::start_electing(Duration::from_secs(30)));
    fixture(servers.url(), servers)
});
