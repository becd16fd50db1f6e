//! Locks on etcd.
//!
//! [`Etcd::open`] connects to the members of one etcd and gives a backend for [`leasehold_core::Client`]. A lock is a key
//! under a lease of its own, created by a transaction that commits only if nobody is in the way; its fence is the revision
//! at which it was created. Whoever waits watches one key: a release wakes one waiter, however many there are. The server's
//! own `Lock` call is never used: it can answer "locked" for a lease that is over.
//!
//! [`Conditional::compare`] gives the condition under which a write of your own to the same etcd commits only while the
//! lock is held: no pause, however long, lets a holder write that has lost it.
//!
//! Reading order: `names` is where things are; `claim` is one contender, `scene` what it finds in its way; `session` is
//! leases, `renew` how they go on; `bell` how wake-ups come; `wire` how requests get there; `admin` and `doctor` are for
//! people. `proto` is what is said on the wire, and `txn` how to say it.

mod admin;
mod bell;
mod cells;
mod claim;
mod config;
mod doctor;
mod entry;
mod error;
mod latch;
mod names;
mod proof;
mod proto;
mod renew;
mod rumours;
mod scene;
mod session;
mod store;
mod txn;
mod wire;

pub use crate::{
    config::EtcdConfig,
    proof::{Condition, Conditional},
    store::Etcd,
};
