//! Transitions of a latch: a count that only goes down, and opens the gate at zero.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Record, Surroundings, step::Answer};
use crate::{
    backend::{Kind, LatchStep, Mode},
    error::{Error, Operation, Result},
    id::ClaimId,
};

/// How many counts are remembered to recognise a repeated request.
const REMEMBERED: usize = 64;

/// A latch that has not opened yet. An open one is no latch at all: nothing is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) count: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counted: Vec<ClaimId>,
}

impl Record {
    pub(super) fn step_latch(
        &mut self,
        step: LatchStep,
        around: &Surroundings<'_>,
    ) -> (Result<Answer>, bool, bool) {
        let cleared = match self.make_way(|found| matches!(found, Kind::Latch { .. }), around) {
            Ok(cleared) => cleared,
            Err(found) => return (Err(Error::conflict(Operation::Latch, found, "a latch")), false, false),
        };
        let before = self.latch.clone();
        match step {
            LatchStep::Read => {}
            LatchStep::Arm { count } => self.arm(count),
            LatchStep::CountDown { id } => self.count_down(id),
        }
        let count = self.latch.as_ref().map_or(0, |latch| latch.count);
        let changed = before != self.latch;
        (Ok(Answer::Count(count)), changed || cleared, cleared || (changed && self.latch.is_none()))
    }

    fn arm(&mut self, count: u64) {
        if self.latch.is_none() && count > 0 {
            self.latch = Some(Count { count, counted: Vec::new() });
        }
    }

    fn count_down(&mut self, id: ClaimId) {
        let Some(latch) = &mut self.latch else { return };
        if latch.counted.contains(&id) {
            return;
        }
        latch.count -= 1;
        latch.counted.push(id);
        if latch.counted.len() > REMEMBERED {
            latch.counted.remove(0);
        }
        if latch.count == 0 {
            self.latch = None;
        }
    }
}

impl Mode {
    /// What a claim in this mode wants the name to be, for messages.
    pub(super) fn noun(self) -> Cow<'static, str> {
        match self {
            Self::Exclusive | Self::Shared => "a lock".into(),
            Self::Permits { of, .. } => format!("a semaphore of {of}").into(),
            Self::Open => "a latch".into(),
        }
    }

    /// Permits held in this mode.
    pub(super) fn permits(self) -> u32 {
        match self {
            Self::Permits { take, .. } => take.get(),
            _ => 0,
        }
    }
}
