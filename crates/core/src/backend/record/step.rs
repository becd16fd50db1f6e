//! Steps: everything that can be done to a record, as values.
//!
//! A step is data, not a closure, so that a store may repeat it, send it to another thread, batch it, or replace
//! it by a statement of its own where it can do the same in one.

use std::sync::Arc;

use super::{Record, Surroundings, Waiting};
use crate::{
    backend::{Attempt, BreakOutcome, Broken, ClaimSpec, Holds, LatchStep, Mode, Release, Renew, Renewal},
    error::{Operation, Result},
    id::{ClaimId, ClientId},
};

/// One thing to do to a record.
#[derive(Clone, Debug)]
pub enum Step {
    /// Try to hold the name; `waiting` joins the line if that fails.
    Attempt {
        /// The acquisition.
        spec: Arc<ClaimSpec>,
        /// Leave an entry among the waiters if the name is not to be had.
        waiting: bool,
    },
    /// Extend a lease that is still held.
    Renew(Renew),
    /// Write how often an acquisition is held.
    Recount {
        /// The acquisition.
        id: ClaimId,
        /// Its holds, absolutely.
        holds: Holds,
    },
    /// Let no later grant have a fence up to this one, if the acquisition is held: from now on it is its own.
    Raise {
        /// The acquisition.
        id: ClaimId,
        /// The fence.
        fence: u64,
    },
    /// Remove an acquisition, held or waiting.
    Release {
        /// The acquisition.
        id: ClaimId,
        /// One of its requests may still arrive: remember the id, so that it finds nothing to win.
        barrier: bool,
    },
    /// Force-release an acquisition.
    Break {
        /// The acquisition.
        id: ClaimId,
        /// By whom and why.
        broken: Broken,
    },
    /// Change or read a latch.
    Latch(LatchStep),
}

impl Step {
    /// What it is part of, for errors.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Attempt { .. } | Self::Raise { .. } => Operation::Acquire,
            Self::Renew(_) => Operation::Renew,
            Self::Recount { .. } => Operation::Reenter,
            Self::Release { .. } => Operation::Release,
            Self::Break { .. } => Operation::Break,
            Self::Latch(_) => Operation::Latch,
        }
    }
}

/// The answer to a step, of the sort that fits it.
#[derive(Debug)]
pub enum Answer {
    /// To [`Step::Attempt`].
    Attempt(Attempt),
    /// To [`Step::Renew`], [`Step::Recount`] and [`Step::Raise`].
    Renewal(Renewal),
    /// To [`Step::Release`].
    Release(Release),
    /// To [`Step::Break`].
    Break(BreakOutcome),
    /// To [`Step::Latch`].
    Count(u64),
}

/// What a step did.
#[derive(Debug)]
#[must_use]
pub struct Applied {
    /// The answer for whoever took the step. A step that fails changes nothing itself; what had run out is gone
    /// all the same.
    pub answer: Result<Answer>,
    /// The record differs from before and must be kept.
    pub changed: bool,
    /// Who should be woken, first come first. Empty if nobody's chances rose.
    pub wake: Vec<Wake>,
}

/// A waiter whose chances rose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Its acquisition.
    pub id: ClaimId,
    /// Its session, where the store has sessions.
    pub session: Option<ClientId>,
    /// Nobody after it can win before it did or went: waking on is needless once this one was reached.
    pub alone: bool,
}

impl Record {
    /// Takes a step.
    pub fn apply(&mut self, step: &Step, around: &Surroundings<'_>) -> Applied {
        if let Some(answer) = self.apply_alone(step, around) {
            return Applied { answer: Ok(answer), changed: true, wake: Vec::new() };
        }
        let expired = self.expire(around.now);
        let (answer, changed, freed) = match step {
            Step::Attempt { spec, waiting } => self.attempt(spec, *waiting, around),
            Step::Renew(renew) => self.renew(renew, around.now),
            Step::Recount { id, holds } => self.recount(*id, *holds, around.now),
            Step::Raise { id, fence } => self.raise(*id, *fence, around.now),
            Step::Release { id, barrier } => self.release(*id, *barrier, around.now),
            Step::Break { id, broken } => self.break_hold(*id, broken, around.now),
            Step::Latch(step) => self.step_latch(*step, around),
        };
        let wake = if freed || expired { self.wakes() } else { Vec::new() };
        Applied { answer, changed: changed || expired, wake }
    }

    /// Those in line, in the order they may win: the fair ones first, since the others let them pass.
    fn wakes(&self) -> Vec<Wake> {
        let (fair, others): (Vec<_>, Vec<_>) = self.waiters.iter().partition(|waiting| waiting.fair);
        // In line, an exclusive waiter keeps out everybody after it. Outside, it does so only by winning.
        let wins = self.holders.is_empty() && fair.is_empty();
        let wake = |waiting: &Waiting| Wake {
            id: waiting.id,
            session: waiting.person.session,
            alone: waiting.mode == Mode::Exclusive && (waiting.fair || wins),
        };
        fair.into_iter().chain(others).map(wake).collect()
    }
}
