//! What time it is for programs whose own clocks differ: the store's word where it has a clock, else this machine's.

use std::time::Duration;

use super::{Engine, time::Instant};
use crate::error::Result;

/// A moment on two clocks: the one that all go by, and our own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    /// The time since 1970.
    pub(crate) time: Duration,
    /// When we heard it.
    pub(crate) heard: Instant,
}

impl Sighting {
    /// The moment on our clock at which the other will show this.
    pub(crate) fn instant_of(self, time: Duration) -> Instant {
        self.heard.after(time.saturating_sub(self.time))
    }

    /// What the other clock shows at this moment of ours, unless it was set meanwhile.
    pub(crate) fn time_at(self, now: Instant) -> Duration {
        self.time + self.heard.until(now)
    }
}

impl Engine {
    /// The time that all go by.
    pub(crate) async fn sight(&self) -> Result<Sighting> {
        let told = self.backend.wall_clock().await?;
        let time = told.unwrap_or_else(|| self.clock.wall());
        Ok(Sighting { time, heard: self.clock.now() })
    }
}
