//! Answers in a form that can be compared.

use std::time::Duration;

use leasehold_core::{
    ClaimId, ErrorKind, Result,
    backend::{
        Attempt, BreakOutcome, Broken, Busy, Grant, Holder, Kind, LockState, Mode, Release, Renewal,
        record::Answer,
    },
};

/// The answer to any step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Granted { fence: u64, granted: Duration },
    Busy { holders: Vec<HeldBy>, place: Option<usize>, waiters: usize, retry_after: Duration },
    Refused(ErrorKind),
    Renewed(Duration),
    Lost(Option<Broken>),
    Released,
    Gone(Option<Broken>),
    Broken,
    NotHeld,
    Count(u64),
}

/// A holder, without what is only for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldBy {
    pub(crate) id: ClaimId,
    pub(crate) mode: Mode,
    pub(crate) fence: u64,
    pub(crate) count: u32,
    pub(crate) held_for: Duration,
    pub(crate) remaining: Duration,
}

/// A waiter, without what is only for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitedFor {
    pub(crate) id: ClaimId,
    pub(crate) mode: Mode,
    pub(crate) fair: bool,
    pub(crate) waited: Duration,
}

/// What people are shown of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) fence: u64,
    pub(crate) holders: Vec<HeldBy>,
    pub(crate) waiters: Vec<WaitedFor>,
}

impl From<Result<Answer>> for Said {
    fn from(answer: Result<Answer>) -> Self {
        match answer {
            Err(error) => Self::Refused(error.kind()),
            Ok(Answer::Attempt(Attempt::Granted(Grant { fence, granted }))) => {
                Self::Granted { fence, granted }
            }
            Ok(Answer::Attempt(Attempt::Busy(busy))) => Self::from(busy),
            Ok(Answer::Renewal(Renewal::Renewed { granted })) => Self::Renewed(granted),
            Ok(Answer::Renewal(Renewal::Lost(broken))) => Self::Lost(broken),
            Ok(Answer::Release(Release::Released)) => Self::Released,
            Ok(Answer::Release(Release::Gone(broken))) => Self::Gone(broken),
            Ok(Answer::Break(BreakOutcome::Broken)) => Self::Broken,
            Ok(Answer::Break(BreakOutcome::NotHeld)) => Self::NotHeld,
            Ok(Answer::Count(count)) => Self::Count(count),
        }
    }
}

impl From<Busy> for Said {
    fn from(busy: Busy) -> Self {
        Self::Busy {
            holders: busy.holders.iter().map(HeldBy::from).collect(),
            place: busy.place,
            waiters: busy.waiters,
            retry_after: busy.retry_after.expect("a record always gives a hint"),
        }
    }
}

impl From<&Holder> for HeldBy {
    fn from(holder: &Holder) -> Self {
        let &Holder { id, mode, fence, count, held_for, remaining, .. } = holder;
        Self { id, mode, fence, count, held_for, remaining }
    }
}

impl From<LockState> for Seen {
    fn from(state: LockState) -> Self {
        let waited_for = |waiter: &leasehold_core::backend::Waiter| {
            let &leasehold_core::backend::Waiter { id, mode, fair, waited, .. } = waiter;
            WaitedFor { id, mode, fair, waited }
        };
        Self {
            kind: state.kind,
            fence: state.fence,
            holders: state.holders.iter().map(HeldBy::from).collect(),
            waiters: state.waiters.iter().map(waited_for).collect(),
        }
    }
}
