//! Histories: what clients believed and did, recorded, and checked afterwards in linear time.
//!
//! A run under faults proves nothing by ending well; its history does. Every process writes what it asked, what it
//! was told and when, on a clock all of them share (one machine's monotonic clock); the checkers then look for what
//! must never be: two who believed to hold one lock, a fence that did not grow, an update that vanished.
//!
//! Every report is a true violation: belief is counted from the moment a grant was *returned* to the earliest of the
//! release being *asked for*, the loss being told, and the holder's own deadline, so slack always speaks for the
//! store. What a history does not show (an answer that never came) is never counted as a violation.
//!
//! Nothing here needs more than the standard library, so a test worker of any sort can use it.
//!
//! ```
//! use leasehold_testkit::history::{Act, Mode, Recorder, check};
//!
//! let recorder = Recorder::new();
//! let grant = recorder.asked("jobs", 7, Act::Acquire { mode: Mode::Exclusive });
//! grant.granted(1, u64::MAX);
//! recorder.asked("jobs", 7, Act::Release).done();
//! assert!(check(&recorder.history()).is_sound());
//! ```

mod belief;
mod event;
mod fault;
mod fence;
#[cfg(feature = "linear")]
mod linear;
mod liveness;
mod notice;
mod overlap;
mod recorder;
mod text;
mod update;
mod verdict;

#[cfg(feature = "linear")]
pub use self::linear::{Order, order};
pub use self::{
    belief::{Belief, beliefs},
    event::{Act, Event, Mode, Phase},
    fault::{Hit, Window},
    fence::{FenceFault, fence_faults},
    liveness::{Outage, outages, stuck},
    notice::{FalseHeld, Notices, notices},
    overlap::{Overlap, overlaps},
    recorder::{Asked, Recorder},
    text::read_file,
    update::{LostUpdate, lost_updates},
    verdict::{Verdict, check},
};
