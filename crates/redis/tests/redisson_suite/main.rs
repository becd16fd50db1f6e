//! Redisson's behavioural suite, ours: each of its cases that makes sense in Rust, under the same name in snake case.
//!
//! One file for each of its test classes. Seconds are tenths here, thousands are dozens, and a time limit is a question
//! that can be answered without a clock: was the first lock lost when the second was granted? `table` holds this suite
//! and the table in `docs/redisson.md` together. After every case nobody listens to anything any more.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
mod stage;
mod as_lock;

mod count_down_latch;
mod fair_lock;
mod fair_lock_drift;
mod fenced_lock;
mod in_cluster;
mod internals;
mod lock;
mod lock_expiration_renewal;
mod lock_heavy;
mod multi_lock;
mod non_reentrant_lock;
mod permit_expirable_semaphore;
mod permit_expirable_semaphore_release;
mod rate_limiter;
mod rate_limiter_changes;
mod read_write_lock;
mod read_write_lock_leases;
mod red_lock;
mod semaphore;
mod spin_lock;

mod table;
