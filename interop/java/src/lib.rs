//! The real Redisson, as a child process that tests drive: the other side of the wire.
//!
//! ```no_run
//! use leasehold_interop::{Config, Java, Version};
//! use leasehold_testkit::servers::{redis::Redis, start_or_skip};
//!
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! let Some(redis) = start_or_skip(Redis::start) else { return Ok(()) };
//! let Some(java) = start_or_skip(|| Java::start(Version::Newest, &Config::single(&redis.url()))) else { return Ok(()) };
//! java.thread("t1").lock("orders").lock().await?;
//! # Ok(()) }
//! ```
//!
//! The program is in `interop/redisson`. It is built with Maven when its sources have changed, into `target/interop`,
//! and needs a network only the first time. Without Java, Maven or Redisson a test fails with the reason, or is
//! skipped aloud where that is allowed, as with every server (see [`leasehold_testkit::servers::Missing`]).
//!
//! Not for production, and not for paused time: the child lives in real time.

#![cfg(unix)]

mod call;
mod config;
mod counters;
mod java;
mod locks;
mod maven;
mod moment;
mod pipe;
mod thread;

pub use self::{
    call::{Call, CallError, Done},
    config::{Config, Version},
    counters::{Latch, Limiter, Permits, Semaphore},
    java::Java,
    locks::Lock,
    moment::Moment,
    thread::Thread,
};
