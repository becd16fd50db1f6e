//! A lock on its way from the store to a guard: whoever drops it on that way gives it back.

use super::{SharedHold, hold::Hold, leave};
use crate::backend::Mode;

/// A lock that was won and that nobody has taken into their hands yet: dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Won {
    hold: Option<SharedHold>,
    fence: u64,
}

impl Won {
    pub(super) fn new(hold: SharedHold, fence: u64) -> Self {
        Self { hold: Some(hold), fence }
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    pub(super) fn hold(&self) -> Option<&Hold> {
        self.hold.as_deref()
    }

    /// Into the hands of a guard, under this fence.
    pub(crate) fn take(mut self) -> (SharedHold, u64) {
        (self.hold.take().expect("taken only once, since taking consumes it"), self.fence)
    }

    /// Gives it back if it was lost on the way.
    pub(super) fn unless_lost(self) -> Option<Self> {
        let is_lost = self.hold.as_ref().is_none_or(|hold| hold.loss().is_some());
        (!is_lost).then_some(self)
    }
}

impl Drop for Won {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            let mode = if hold.holds().exclusive > 0 { Mode::Exclusive } else { Mode::Shared };
            leave::in_background(&hold, mode, self.fence);
        }
    }
}
