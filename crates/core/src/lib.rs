//! The heart of Leasehold: what users hold, what happens in between, and what a store must promise.
//!
//! Users depend on the `leasehold` crate, which re-exports all of this and adds the stores. Those who write a
//! store depend on this crate, and test it with `leasehold-testkit`.
//!
//! Reading order: [`Client`] makes [`Lock`]s; [`backend`] is the contract a store fulfils; `engine` is everything
//! between the two. Dependencies point one way, `primitives → engine → backend`, and this crate never names a
//! server.

mod audit;
pub mod backend;
mod call_site;
mod client;
mod engine;
mod error;
mod id;
mod key;
#[doc(hidden)]
pub mod planted;
mod primitives;
mod span;
mod sync;
mod who;

pub use crate::{
    audit::{Action, AuditEntry, AuditPage, Forced},
    call_site::CallSite,
    client::{Client, ClientBuilder, Stats},
    engine::{book::CatchUp, farewell::Farewell, history::Past, hold::State, time},
    error::{Error, ErrorKind, Operation, Result, Retry},
    id::{ClaimId, ClientId},
    key::{Key, MAX_NAME},
    primitives::{
        Election, Guard, Health, Id, IdSpace, Ids, Job, JobPage, JobState, Latch, Leader, Leaders,
        Leadership, Lock, LockSet, Outcome, Owner, Proof, RateLimiter, Run, RwLock, Semaphore, SetGuard,
        Ticket, Turn, Watch,
    },
    span::Span,
    who::Who,
};
pub use leasehold_schedule::{Schedule, Slot};

/// What is known of a job's runs. See [`Job::state`].
pub mod job {
    pub use crate::{
        engine::past::{Ended, PastRun, Paused, Running, Start, Totals},
        primitives::{BoxedRun, BoxedWork},
    };
}
