//! Leasehold's locks in SQL databases.
//!
//! Each database is a module of its own behind a feature of the same name; all keep one record per name (see
//! [`leasehold_core::backend::record`]) and differ in how they make a step atomic, tell the time and wake waiters.
//!
//! | feature | store |
//! |---|---|
//! | `sqlite` (default) | [`Sqlite`]: one file, many processes on one machine |

#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteConfig};
