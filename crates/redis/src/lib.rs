//! Locks on Redis and Valkey, on one wire with Redisson.
//!
//! [`Redis::open`] connects to one server and gives a backend for [`leasehold_core::Client`]. Names, fields, time-outs
//! and messages are Redisson's, byte for byte, so a Java service and a Rust service contend for the same lock; what
//! Redisson has no room for (fences of plain locks, who holds and who waits, marks of forced releases) lives in keys of
//! our own beside it, `leasehold_…:{name}`, and expires by itself.
//!
//! Reading order: `claim` is one contender; `scripts/*.lua` is what the server does; `wire` is how requests get there,
//! `bell` how wake-ups come back, and `rumours` the news that a lock was broken; `connect` is which server a name lives on; `admin`, `presence` and `doctor` are for
//! people.

mod admin;
mod answer;
mod bell;
mod cells;
mod claim;
mod config;
mod connect;
mod crowd;
mod doctor;
mod error;
#[cfg(test)]
mod fuzz;
mod names;
mod people;
mod permit;
#[cfg(feature = "planted-bugs")]
mod planted;
mod presence;
mod rate;
mod redlock;
mod rumours;
mod scripts;
mod sites;
mod store;
mod wire;

pub use crate::{
    config::{Layout, Publish, RedisConfig},
    names::ClusterTrap,
    redlock::redlock,
    store::Redis,
};
