//! What a Leasehold store must pass, and what it takes to find out.
//!
//! - [`conformance`](mod@conformance): the suite that every store passes or refuses by capability.
//! - [`scripted`]: faults on order, per verb.
//! - [`history`]: what clients believed and did, recorded, and checkers that find what must never be.
//! - [`faultline`]: a proxy that loses, delays and cuts what goes through it, on command.
//! - [`herd`]: many who wait for one name, and what a release costs then.
//! - [`servers`]: real servers as child processes, never mocks.

pub mod conformance;
pub mod faultline;
pub mod herd;
pub mod history;
pub mod scripted;
#[cfg(unix)]
pub mod servers;
