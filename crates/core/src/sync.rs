//! What threads share state by: the standard library's, or shuttle's where every order of threads is to be tried.
//!
//! `crates/interleave` compiles this crate a second time with `cfg(shuttle)`, and with shuttle's tokio below it; nothing
//! else sets that. Statics stay with the standard library: shuttle's objects belong to one run.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
