//! What users hold: thin, without I/O and without loops of their own.

mod election;
mod guard;
mod job;
pub(crate) mod job_state;
mod latch;
mod lock;
mod options;
mod owner;
mod proof;
mod rate_limiter;
mod rwlock;
mod semaphore;
mod set;
mod ticket;
mod turns;

pub(crate) use self::options::{DEFAULT_TTL, Options};
pub use self::{
    election::{Election, Leader, Leaders, Leadership},
    guard::Guard,
    job::{BoxedRun, BoxedWork, Job, Run, Turn},
    job_state::{JobPage, JobState},
    latch::Latch,
    lock::{Lock, Outcome},
    owner::Owner,
    proof::Proof,
    rate_limiter::RateLimiter,
    rwlock::RwLock,
    semaphore::Semaphore,
    set::{LockSet, SetGuard},
    ticket::Ticket,
};
