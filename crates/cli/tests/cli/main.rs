//! The binary as its users meet it: real processes on a store of their own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod bench;
mod crash;
mod cron;
mod doctor;
mod elect;
mod listing;
mod outage;
mod run;
mod serve;
mod settings;
mod signals;
mod snapshots;
mod terminal;
mod tickets;
