//! The same wire, shown: the real Redisson, newest and old, and we contend for the same names on one server.
//!
//! One file for each object. Every sentence is tried with both releases. What is to be handed over by a wake-up is held
//! with a lease far longer than any test may take, and handed over so often that looking again now and then would not
//! do either.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
mod stage;

mod cluster;
mod counter;
mod fair;
mod fenced;
mod latch;
mod lock;
mod permits;
mod rate;
mod rwlock;
mod semaphore;
mod several;
