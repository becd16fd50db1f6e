//! Locks on ZooKeeper: a line of ephemeral nodes, each watching the one before it.
//!
//! [`ZooKeeper::open`] connects and gives a backend for [`leasehold_core::Client`]. A name is a container node; each
//! acquisition is an ephemeral sequential node in it, with its id in the node's name. Whoever is first holds the name;
//! everybody else watches one other node, so a release wakes one waiter and not all of them.
//!
//! # What a lease is here
//! A node lives as long as the session that made it. A grant is believed for the ttl that was asked for, but never longer
//! than **half the session's time-out**, counted from before a write that the leader confirmed. Half, because a
//! follower that was cut off from its leader goes on answering reads while the leader, who has not heard of us since,
//! counts down our session: a holder must have given up before that ends. Renewing costs one write per client
//! and one read per lock, however many are held. A lease that nobody renews is ended by our own process, and by the end of
//! its session if the process is gone.
//!
//! # Whom it meets
//! Nodes are named as kazoo names them (`…__lock__…`, `…__rlock__…`), so kazoo's `Lock`, `ReadLock` and `WriteLock` on
//! the same path stand in one line with ours. Curator sorts by another rule and would misplace our nodes; a name in use by
//! Curator is refused as a conflict, never shared.
//!
//! # What it does not do
//! No tickets (a node without a session would need a keeper of its own), no cohorts (czxids are no counter), no rate
//! limiters.
//!
//! Reading order: `claim` is one contender; `line` decides, purely, whose turn it is; `names` is how it looks in the
//! store; `session` is the connection, `book` the nodes of ours in it; `latch` and `cells` are records changed by
//! compare-and-set; `admin` and `doctor` are for people.

mod admin;
mod bell;
mod book;
mod cells;
mod claim;
mod config;
mod doctor;
mod error;
mod latch;
mod line;
mod names;
mod session;
mod store;
mod tag;

pub use crate::{config::ZooKeeperConfig, store::ZooKeeper};
