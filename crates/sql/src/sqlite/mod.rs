//! Locks in a SQLite file: one machine, many processes, nothing to install.
//!
//! # What it promises
//!
//! - **Exclusion** among all processes of the machine that open the same file. Every step is one transaction under
//!   SQLite's write lock.
//! - **Leases on the boot clock** (`CLOCK_BOOTTIME`): nobody who sets the wall clock touches them, and a suspended
//!   machine's leases run on. Moments of another boot are void.
//! - **A killed process is noticed at once**, through the lock the kernel drops with its session file, see
//!   `session`. Its lease need not run out, unless somebody removed that file: then nothing but the lease tells.
//! - **Fences grow** through release, expiry, removal of the row, and crashes of the machine.
//!
//! # Durability
//!
//! Locks do not wait for the disk: a commit survives every crash of a process, and a crash of the machine may take
//! back the last ones. That costs nothing, because such a crash ends every lease anyway, but for one thing: a fence
//! that was given out and forgotten must not be given out again. So the first to open the file in a new boot lifts
//! the floor of all fences by 2^32, more than can have been forgotten, and that is on the disk before any lock of
//! the boot is granted. See `setup`.
//!
//! What no lease ends (cells, and the counts of latches) is on the disk before the write is answered. The reasons
//! are in `docs/decisions/0002-sqlite-durability.md`.
//!
//! # What it does not do
//!
//! It refuses network file systems where it can tell, symbolic links, files of other users, and files in use by
//! processes that see another boot id than ours, as some containers do. It does not notice a file replaced between
//! its check and a commit, nor processes in a time namespace with a clock of their own. A process stopped in the
//! middle of a transaction, some twenty microseconds long, keeps all others from writing until it goes on or is
//! killed: they then fail with the kind `Unavailable`. One stopped in the middle of a look keeps the log growing.
//!
//! On a full disk new names are refused once the free pages are used up; what is in use goes on, see `log`.
//!
//! # The map
//!
//! `store` is the store; `ledger` takes steps in transactions, on `rows` (with the `recent` ones at hand), over a
//! `connection`. `session`, `bell` with `post`, `cells` and `admin` are its other sides. `open`, `setup`, `upkeep` and
//! `log` look after the file, `filesystem` with `mounts` after where it is. `clock` tells the time, `error` what went wrong; `doctor`
//! examines all of it for people.

mod admin;
mod bell;
mod cells;
mod clock;
mod config;
mod connection;
mod doctor;
mod error;
mod filesystem;
#[cfg(test)]
mod fixture;
mod ledger;
mod log;
#[cfg(any(target_os = "linux", target_os = "android", test))]
mod mounts;
mod open;
mod post;
mod recent;
mod rows;
mod session;
mod setup;
mod store;
mod upkeep;

pub use self::{bell::SqliteBell, config::SqliteConfig, store::Sqlite};
