//! Locks for synchronous code: the same names, the same options, and calls that return when they are done.
//!
//! ```
//! let locks = leasehold::blocking::connect("memory:")?;
//! let guard = locks.lock("order:42").wait("5s").acquire()?;
//! println!("held, with fence {}", guard.fence());
//! guard.release()?;                       // or drop it, on any thread
//! # Ok::<(), leasehold::Error>(())
//! ```
//!
//! # Where things run
//! One thread of this library's own, started with the first client and shared by all, keeps the connections and renews
//! the leases. A call is driven by the thread that makes it, which sleeps until it is answered.
//!
//! It works outside of a runtime and within one. Whoever calls from a task of a multi-threaded tokio runtime holds up that
//! task only: the others of its thread are moved to another. On a current-thread runtime there is no other thread, so
//! everything on it waits; call it in `spawn_blocking` there. A `LocalSet` within a multi-threaded runtime is where tokio
//! itself panics on blocking.
//!
//! # What it cannot do
//! Stop work that goes on after its lock was lost: a thread cannot be dropped as a future can. So ask
//! [`Guard::check`] before each step that matters, and pass [`Guard::fence`] along.

#[macro_use]
mod front;
mod client;
mod election;
mod guard;
mod ids;
mod job;
mod latch;
mod lock;
mod rate_limiter;
mod set;
mod wait;

pub(crate) use self::wait::wait;
pub use self::{
    client::{Client, connect, connect_with},
    election::{Election, Leaders, Leadership},
    guard::{Guard, GuardRef},
    ids::{IdSpace, Ids},
    job::Job,
    latch::Latch,
    lock::{Lock, Outcome, RwLock, Semaphore},
    rate_limiter::RateLimiter,
    set::{LockSet, SetGuard},
};
