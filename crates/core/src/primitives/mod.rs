//! What users hold: thin, without I/O and without loops of their own.

mod asked;
mod election;
mod guard;
mod health;
mod ids;
mod job;
mod latch;
mod lock;
pub(crate) mod operate;
mod options;
mod owner;
mod proof;
mod rate_limiter;
mod run;
mod rwlock;
mod semaphore;
mod set;
mod ticket;
mod turns;
mod watch;

pub(crate) use self::options::{DEFAULT_TTL, Options};
pub use self::{
    election::{Election, Leader, Leaders, Leadership},
    guard::Guard,
    health::Health,
    ids::{Id, IdSpace, Ids},
    job::{BoxedRun, BoxedWork, Job, Run, Turn},
    latch::Latch,
    lock::{Lock, Outcome},
    operate::{JobPage, JobState},
    owner::Owner,
    proof::Proof,
    rate_limiter::RateLimiter,
    rwlock::RwLock,
    semaphore::Semaphore,
    set::{LockSet, SetGuard},
    ticket::Ticket,
    watch::Watch,
};
