//! Locks in MongoDB: one document per name, changed in one request, on the server's clock.
//!
//! # How it works
//!
//! A document holds the [record](leasehold_core::backend::record) of a name and a version that no other write ever
//! has. Every step is one `findOneAndUpdate` with a pipeline: it changes the document if it is as expected, and returns
//! it either way, with the server's time (`$$NOW`). So a free lock is had by one request and given back by one; only
//! those who find it in use and have something to write need another. Writes are acknowledged by a majority, from the
//! journal. What a majority has not confirmed is unknown, and never taken for granted.
//!
//! # What it promises
//!
//! - On a replica set: exclusion through the loss of any one member, and fences that grow through every election.
//! - On a single server: exclusion while the server keeps its data.
//! - Leases are reckoned by the primary's clock. After an election that is another clock: members should agree on the time
//!   to much less than a lease.
//! - Nothing is left for ever: MongoDB itself removes a document that was not used for a day (an index with
//!   `expireAfterSeconds`). It never decides whether a lock is held. A name that comes back begins with a fence made of
//!   the time, above all it had before, unless the server's clock was set back by more than that day.
//!
//! # Wake-ups
//!
//! On a replica set a release names those it wakes, and one change stream per client hears of its own; see `bell`. On a
//! single server, which has no change streams, those who wait look again, soon at first, then less often.
//!
//! # The map
//!
//! `store` is the store, on `documents` through a `desk`. `connect` finds the servers and prepares the collections;
//! `bell`, `cells` and `admin` are its other sides; `error` says what errors mean; `doctor` examines it for people.

mod admin;
mod bell;
mod cells;
mod config;
mod connect;
mod desk;
mod doctor;
mod documents;
mod error;
mod store;

pub use crate::{bell::MongodbBell, config::MongodbConfig, store::Mongodb};
