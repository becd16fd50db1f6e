//! One fact about a name: an acquisition holds it, waits for it, was broken off it or was withdrawn.

use std::time::Duration;

use leasehold_core::{
    ClaimId, ClientId,
    backend::{Broken, Kind, Mode, record::Moment},
};

use super::{Asked, HeldBy, WaitedFor};

/// Something that is so until its time.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    pub(super) id: ClaimId,
    pub(super) until: u64,
    /// The session it ends with.
    pub(super) session: Option<ClientId>,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Holds { mode: Mode, fence: u64, count: u32, since: Moment },
    Waits { mode: Mode, fair: bool, since: Moment },
    Broke(Broken),
    Withdrawn,
}

/// The sorts of thing a name can be used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Lock,
    Semaphore(u32),
    Latch,
}

impl Sort {
    pub(super) fn of(mode: Mode) -> Self {
        match mode {
            Mode::Permits { of, .. } => Self::Semaphore(of.get()),
            Mode::Open => Self::Latch,
            _ => Self::Lock,
        }
    }
}

impl Fact {
    pub(super) fn mode(&self) -> Option<Mode> {
        match self.what {
            What::Holds { mode, .. } | What::Waits { mode, .. } => Some(mode),
            _ => None,
        }
    }

    pub(super) fn sort(&self) -> Option<Sort> {
        self.mode().map(Sort::of)
    }

    /// What the name is by this fact; waiting for a latch makes no name a latch.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self.sort()? {
            Sort::Lock => Some(Kind::Lock),
            Sort::Semaphore(of) => Some(Kind::Semaphore { of }),
            Sort::Latch => None,
        }
    }

    pub(super) fn is_hold(&self) -> bool {
        matches!(self.what, What::Holds { .. })
    }

    pub(super) fn is_wait(&self) -> bool {
        matches!(self.what, What::Waits { .. })
    }

    pub(super) fn is_in_line(&self) -> bool {
        matches!(self.what, What::Waits { fair: true, .. })
    }

    /// The acquisition is over and may not begin again under the same id.
    pub(super) fn is_an_end(&self) -> bool {
        matches!(self.what, What::Broke(_) | What::Withdrawn)
    }

    pub(super) fn is_dead(&self, asked: Asked<'_>) -> bool {
        self.session.is_some_and(|session| asked.by != Some(session) && asked.dead.contains(&session))
    }

    pub(super) fn held_by(&self, now: Moment) -> Option<HeldBy> {
        let What::Holds { mode, fence, count, since } = self.what else { return None };
        let held_for = Duration::from_micros(now.0 - since.0);
        let remaining = Duration::from_micros(self.until - now.0);
        Some(HeldBy { id: self.id, mode, fence, count, held_for, remaining })
    }

    pub(super) fn waited_for(&self, now: Moment) -> Option<WaitedFor> {
        let What::Waits { mode, fair, since } = self.what else { return None };
        Some(WaitedFor { id: self.id, mode, fair, waited: Duration::from_micros(now.0 - since.0) })
    }
}
