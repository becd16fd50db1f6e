//! The README's table of what each store can do and is worth is what the stores say of themselves when they are opened:
//! written by `cargo xtask stores`, and checked here.
//!
//! To add a store, add a line to [`rows`].

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{env, fs, path::Path, time::Duration};

use leasehold_testkit::servers::{
    StartError, etcd, memcached, mongodb,
    mysql::{Brand, MySql},
    postgres, redis,
    redis::Replicated,
    start_or_skip, zookeeper,
    zookeeper::Ensemble,
};

/// The table is between these two lines.
const BEGIN: &str = "<!-- what stores say of themselves; written by `cargo xtask stores` -->\n";
const END: &str = "<!-- end of what stores say -->\n";

/// Set to write the table instead of checking it.
const WRITE: &str = "LEASEHOLD_WRITE_TABLE";

const HEAD: &str = "\
| store | guarantee | a lock may be granted twice if | read-write | semaphores | fair | latches | cells, elections | rate limiters | tickets | cohorts | leases |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_says_what_stores_say_of_themselves() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table has a beginning");
    let (written, after) = rest.split_once(END).expect("the table has an end");
    // Where a server may be missing and is, that was said aloud.
    let Some(rows) = rows().await else { return };
    let table = HEAD.to_owned() + &rows.concat();
    if env::var_os(WRITE).is_some() {
        fs::write(&readme, [before, BEGIN, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(written, table, "the README is out of date; run `cargo xtask stores`");
    }
}

/// Every store, once for each thing it promises.
async fn rows() -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let confirmed = |servers: &Replicated| servers.url() + "?wait_replicas=1";
    Some(vec![
        row("`memory:`", "memory:").await,
        row("`sqlite:`", &file).await,
        served("`postgres://`", postgres::Postgres::start, |server| server.url("postgres")).await?,
        served("`mysql://`, `mariadb://`", || MySql::start(Brand::MariaDb), |server| server.url("mysql"))
            .await?,
        served("`redis://`", redis::Redis::start, redis::Redis::url).await?,
        served("`redis+sentinel://`", redis::Sentinels::start, redis::Sentinels::url).await?,
        served("`redis+replicas://`", || Replicated::start(1), Replicated::url).await?,
        served("the same with `wait_replicas`", || Replicated::start(1), confirmed).await?,
        served("`redis+cluster://`", redis::Cluster::start, redis::Cluster::url).await?,
        served("`redlock+redis://`", || redis::Independent::start(5), redis::Independent::url).await?,
        served("`zookeeper://`", || Ensemble::start(3), Ensemble::url).await?,
        served("`zookeeper://`, one server", zookeeper::ZooKeeper::start, zookeeper::ZooKeeper::url).await?,
        served("`etcd://`", etcd::Etcd::start, etcd::Etcd::url).await?,
        served("`mongodb://`, a replica set", mongodb::ReplicaSet::start, mongodb::ReplicaSet::url).await?,
        served("`mongodb://`, one server", mongodb::Mongodb::start, mongodb::Mongodb::url).await?,
        served("`memcached://`", memcached::Memcached::start, memcached::Memcached::url).await?,
    ])
}

/// The row of a store on servers of its own; `None`, counted aloud, where they may be missing and are.
async fn served<T>(
    store: &str,
    start: impl FnOnce() -> Result<T, StartError>,
    url: impl Fn(&T) -> String,
) -> Option<String> {
    let servers = start_or_skip(start)?;
    Some(row(store, &url(&servers)).await)
}

async fn row(store: &str, url: &str) -> String {
    let client = leasehold::connect(url).await.unwrap();
    let (can, guarantee) = (client.info().capabilities, client.info().guarantee);
    let can_do =
        [can.shared, can.permits, can.fair, can.latch, can.cells, can.rate, can.detached, can.cohort];
    let can_do = can_do.map(|can| if can { "yes" } else { "–" }).join(" | ");
    let leases = format!("{} to {}", length(can.min_ttl), length(can.max_ttl));
    format!("| {store} | {} | {} | {can_do} | {leases} |\n", guarantee.level, guarantee.unless)
}

fn length(lease: Duration) -> String {
    match lease.as_secs() / (24 * 3600) {
        0 => format!("{lease:?}"),
        days => format!("{days} days"),
    }
}
