//! The examples as their readers meet them: the real programs, several of each, on real stores.
//!
//! Nothing here is a matter of seconds. A test waits for what a program prints, under a limit that only a hang reaches. The
//! batch script needs the `leasehold` command and has its test there: `crates/cli/tests/cli/batch.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod leader;
mod order_service;
mod running;
mod scheduled_job;
