//! The limit on stores other than Redis: the requests that a lock needs there, through the client library that our store
//! uses, with nothing around them.
//!
//! Each is one connection for one task: it takes what nobody has and gives it back, as often as ours goes to the server
//! for that, and writes about as much. It does not wait, is not renewed, and says nothing of who holds: it is no lock.

mod etcd;
mod memcached;
mod mongodb;
mod mysql;
mod postgres;
mod zookeeper;

use leasehold_workload::{Ask, perform};

use super::text;

/// Which store it is, the URL says.
pub(super) fn run(ask: &Ask) -> Result<(), String> {
    match ask.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("etcd") => perform::<etcd::Etcd>(ask),
        Some("memcached") => perform::<memcached::Memcached>(ask),
        Some("mongodb") => perform::<mongodb::Mongodb>(ask),
        Some("mysql") => perform::<mysql::MySql>(ask),
        Some("postgres") => perform::<postgres::Postgres>(ask),
        Some("zookeeper") => perform::<zookeeper::ZooKeeper>(ask),
        _ => Err(format!("nothing is known of the bare requests of {:?}", ask.url)),
    }
}

/// Of about the size of a record with one holder.
fn record() -> String {
    "x".repeat(300)
}
