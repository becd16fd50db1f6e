//! Real servers as child processes: on a free port of the loopback interface, in a folder of their own, gone with
//! whoever started them.
//!
//! A server is killed by its process id with kill(2) when its [`Server`] is dropped; never by name, never by a
//! process group, never through a shell. When the test process itself is killed, the kernel ends its servers
//! (`setpriv --pdeathsig`, part of util-linux; where that is missing, such a server lives on until somebody ends it,
//! and nothing else changes). Folders are removed on drop, not when the test process is killed.
//!
//! What is missing is said aloud: see [`Missing`].
//!
//! To add a server: describe its program and arguments as a [`Recipe`], and how to tell that it answers. See
//! [`redis`] for the shape.

mod certificates;
pub mod etcd;
mod humble;
pub mod memcached;
mod missing;
pub mod mongodb;
pub mod mysql;
mod nursery;
pub mod postgres;
mod process;
pub mod redis;
mod shared;
pub mod skew;
pub mod zookeeper;

pub use self::{
    certificates::make_certificates,
    missing::{Missing, start_or_skip},
    process::{Recipe, Server, StartError, free_port},
    shared::Shared,
};
