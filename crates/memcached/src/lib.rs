//! Locks in memcached: best effort, for work that may be done twice.
//!
//! memcached is a cache. It forgets whatever it has no room for, forgets everything when it is restarted or flushed, and
//! has no replicas; so a lock in it may be granted twice, and its [`Guarantee`](leasehold_core::backend::Guarantee) is
//! S0. It saves work, and its holders are told of a loss by their next renewal. A resource that must be safe wants
//! another store.
//!
//! # How it works
//!
//! One item per name, with the [record](leasehold_core::backend::record) of the name, changed only by meta commands with
//! compare-and-set: `mg` reads it with its version, `ms` writes it if the version is still the same, or if there is none.
//! A read and the write that goes by it use one connection, so they meet one and the same server process: versions
//! begin anew with each, and an old one must not fit a new item.
//!
//! Wake-ups there are none: those who wait look again, soon at first, then less often.
//!
//! # Bounds
//!
//! - **Time is the server's, in whole seconds**, and up to two of them old; leases are made longer by that in the store.
//!   So a lock whose holder died is free up to two seconds later than elsewhere. From 1 s to 29 days: beyond 30 days
//!   memcached would take a lease for a date. See `tick`.
//! - **Names** may be as long as anywhere: what does not fit memcached's 250 bytes is hashed. See `names`.
//! - **Fences** begin at the server's time when a name is used again, so they grow through evictions, flushes and restarts,
//!   unless its clock was set back meanwhile, or the name was taken, lost and taken again within two seconds.
//! - **One server.** Spread over several by a hash, names would move when one goes down, and be locked twice.
//!
//! # The client
//!
//! The client crates in use either lack the meta commands with compare-and-set or share a connection in a way that a
//! dropped request can shift its answer to the next one; what is needed of the protocol is three commands. So
//! `connection` speaks it: a request owns its connection until its answer is read whole, and a dropped request drops
//! the connection.
//!
//! # The map
//!
//! `store` is the store, on `items` over a `pool` of `connection`s. `names`, `tick` and `error` say how names, time and
//! errors are translated. `cells` and `admin` are the store's other sides; `doctor` examines the server for people.

mod admin;
mod cells;
mod config;
mod connection;
mod doctor;
mod error;
mod items;
mod names;
mod pool;
mod store;
mod tick;

pub use crate::{config::MemcachedConfig, store::Memcached};
