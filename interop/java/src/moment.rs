//! When something happened, on the one clock that all processes of a machine share.
//!
//! That is the monotonic clock; on Linux it is also what a Java process stamps its answers with, so moments of Rust
//! and of Java can be compared. They say nothing about wall time, and nothing across machines.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on the monotonic clock of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Self(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default()))
    }

    /// How long after that one; zero if it was before.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards() {
        let earlier = Moment::now();
        assert!(Moment::now() >= earlier);
        assert_eq!(earlier.since(Moment::now()), Duration::ZERO);
    }
}
