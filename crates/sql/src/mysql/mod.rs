//! Locks in MySQL (8 and newer) and MariaDB (10.6 and newer): a row per name, on the server's clock.
//!
//! # What it promises
//!
//! - **Exclusion** among all who use the same tables, which InnoDB keeps. A step is one conditional statement, or a look
//!   and one; see [`server`](crate::server).
//! - **Leases on the server's clock**, in UTC: no time zone and no change to summer time touches them.
//! - **Fences grow** through release, expiry, removal of the row and crashes of the server, for as long as it keeps
//!   what it has committed.
//! - **One round trip** for an acquire that nobody contends, and one for its release.
//! - **The lock and a write of yours commit together** with [`InTransaction`].
//!
//! # What it does not do
//!
//! It is not woken: the server has no notifications. Waiters look for themselves, some twenty times a second at the head
//! of the line and less often behind. A jump of the server's clock, or a failover to a replica that lags, does what it
//! does to [PostgreSQL](crate::server). On Galera two nodes may both answer yes until one has to give way at commit: use
//! one node for locks.
//!
//! A holder that dies keeps the lock until its lease ends, unless the store is opened with a session: a lock of `GET_LOCK` on a
//! connection of its own, whose end others notice at once. It costs that connection and its signs of life, and a restart of
//! the server ends it too, as does a failover, and whatever stands between and closes connections: then a lock may be granted
//! anew before its holder hears of it.
//!
//! # Two traps
//!
//! Within a transaction a plain read shows what was there when the transaction began, not what is: no step relies on one.
//! And an update that changes nothing counts as none: every write of ours changes the version.

mod cells;
mod config;
mod connection;
mod database;
mod doctor;
mod error;
mod proof;
mod session;
mod setup;
mod statements;
mod versioned;

pub use self::{config::MySqlConfig, database::MySqlDatabase, proof::InTransaction, setup::TABLES};

/// Locks in MySQL or MariaDB, for all machines that reach it.
pub type MySql = crate::server::Served<MySqlDatabase>;
