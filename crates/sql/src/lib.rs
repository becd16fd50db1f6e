//! Leasehold's locks in SQL databases.
//!
//! Each database is a module of its own behind a feature of the same name; all keep one record per name (see
//! [`leasehold_core::backend::record`]) and differ in how they make a step atomic, tell the time and wake waiters.
//!
//! | feature | store |
//! |---|---|
//! | `sqlite` (default) | [`Sqlite`]: one file, many processes on one machine |
//! | `postgres` | [`Postgres`]: a PostgreSQL, for all machines that reach it |
//! | `mysql` | [`MySql`]: a MySQL or MariaDB, for all machines that reach it |
//!
//! The servers share all but their SQL, see `server`; what both let choose is [`Tls`].

#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub mod server;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "mysql")]
pub use mysql::{MySql, MySqlConfig};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresConfig};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use server::{Tls, Updated, Versioned};

#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteConfig};
