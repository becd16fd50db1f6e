//! Faults on order: a store whose every verb can be made to fail, stall, or lose its answer, call by call.
//!
//! A [`Script`] says what happens to the next call of each [`Verb`]; two wrappers play it:
//!
//! - [`ScriptedRecords`] wraps a record store **below** its claims. A request it holds back really arrives later, even
//!   after the release that was meant to stop it: this is where contract C6 of record stores is put to the test.
//! - [`Scripted`] wraps any [`Backend`](leasehold_core::backend::Backend) **above** its claims. It is a backend that
//!   fulfils the contract itself, so what it holds back is stopped by a release, as C6 demands: this is where the
//!   engine is put to the test. (A claim whose answer is lost above it cannot know; making a request overtake there
//!   would blame the store for what it was never told. Stores that are not record stores need their wire cut instead.)
//!
//! Without faults both are transparent, and count calls.
//!
//! ```
//! # use leasehold_testkit::scripted::{Fault, Script, Scripted, Verb};
//! use leasehold_core::{ErrorKind, backend::Memory};
//!
//! let script = Script::new();
//! script.next(Verb::Renew, [Fault::Lost, Fault::Err(ErrorKind::Unavailable)]);
//! let store = Scripted::new(Memory::new(), script.clone());
//! assert_eq!(script.calls(Verb::Renew), 0);
//! # drop(store);
//! ```

mod backend;
mod claim;
mod records;
mod script;
mod seed;

use std::time::Duration;

use leasehold_core::ErrorKind;

pub use self::{
    backend::Scripted,
    records::{ScriptedBell, ScriptedRecords},
    script::{Script, requests_in_all},
    seed::{Dice, Weather},
};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it goes through.
    Ok,
    /// It never reaches the store; the caller gets an error of this kind.
    Err(ErrorKind),
    /// It takes half of this time to arrive, and its answer the other half to come back.
    Slow(Duration),
    /// The answer is lost (`Indeterminate`) and the request takes effect this much later, whatever happens meanwhile.
    Late(Duration),
    /// It takes effect at once and its answer is lost (`Indeterminate`).
    Lost,
    /// It never reaches the store, and the caller never gets an answer.
    Never,
}

/// What a store can be asked: the methods of a backend and of its claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// `Claim::attempt`.
    Attempt,
    /// `Claim::changed`. Here `Err` is an error of the bell, `Slow` and `Late` a ring that is heard late, `Lost` a ring
    /// that is not heard, `Never` a bell that is deaf from then on.
    Changed,
    /// `Backend::renew`, drawn once per lease in the batch.
    Renew,
    /// `Claim::recount`.
    Recount,
    /// `Claim::raise`.
    Raise,
    /// `Claim::release` and `Backend::release`.
    Release,
    /// `Backend::latch`.
    Latch,
    /// `Backend::rate`.
    Rate,
    /// `Backend::announce`.
    Announce,
    /// `Backend::break_hold`.
    Break,
    /// `Backend::inspect`.
    Inspect,
    /// `Backend::list`.
    List,
    /// `Backend::read_cell`.
    ReadCell,
    /// `Backend::write_cell`.
    WriteCell,
    /// `Backend::list_cells`.
    ListCells,
    /// `Backend::wall_clock`.
    Clock,
    /// `Backend::close`.
    Close,
}
