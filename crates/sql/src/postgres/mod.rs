//! Locks in PostgreSQL (12 and newer): a row per name, on the server's clock.
//!
//! # What it promises
//!
//! - **Exclusion** among all who use the same tables. A step is one conditional statement, or a look and one; see
//!   [`server`](crate::server).
//! - **Leases on the server's clock.** A client's clock is never compared with it.
//! - **Fences grow** through release, expiry, removal of the row and crashes of the server, for as long as it keeps
//!   what it has committed.
//! - **One round trip** for an acquire that nobody contends, and one for its release.
//! - **Any pooler may stand in between**: every statement is a transaction of its own. All it leaves in its session is
//!   itself, prepared under a name that says which text it is, for whoever of us comes next. Only the wake-ups need a connection of their own, see [`bell`](self); behind a pooler that takes it away
//!   waiters look for themselves, some twenty times a second.
//! - **The lock and a write of yours commit together** with [`InTransaction`].
//!
//! # What it does not do
//!
//! A jump of the server's clock ends leases early, and then two may believe to hold until one hears of it; who is behind
//! is known by the fence. A failover to a standby that had not received the last commits forgets locks and fences; with
//! `synchronous_standby_names` it does not. `doctor` says which it is.
//!
//! A holder that dies keeps the lock until its lease ends, unless the store is opened with a session: an advisory lock on a
//! connection of its own, whose end others notice at once. It costs that connection and its signs of life, and a restart of
//! the server ends it too, as does a failover, and whatever stands between and closes connections: then a lock may be granted
//! anew before its holder hears of it.

mod bell;
mod cells;
mod config;
mod connection;
mod database;
mod doctor;
mod error;
mod prepared;
mod proof;
mod session;
mod setup;
mod statements;
mod versioned;

pub use self::{config::PostgresConfig, database::PostgresDatabase, proof::InTransaction, setup::TABLES};

/// Locks in PostgreSQL, for all machines that reach it.
pub type Postgres = crate::server::Served<PostgresDatabase>;
