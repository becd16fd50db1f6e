//! The bell of a store that wakes nobody: it rings by itself, soon at first, then less and less often.
//!
//! Most locks are held for moments, so those who wait look again quickly; one that is held for long is not asked for
//! all the time. Once the pauses have grown to [`SLOWEST`] it falls silent, and those who wait look again at the
//! store's polling pause, as everybody does.

use std::time::Duration;

use super::Bell;
use crate::time::Clock;

/// The first pause; each one after is twice as long.
const FIRST: Duration = Duration::from_millis(1);

/// After a pause of this length there is no other.
const SLOWEST: Duration = Duration::from_millis(64);

/// Rings by itself.
#[derive(Debug)]
pub struct Polling {
    pause: Duration,
}

impl Polling {
    /// A bell that has not rung yet.
    pub fn new() -> Self {
        Self { pause: FIRST }
    }
}

impl Default for Polling {
    fn default() -> Self {
        Self::new()
    }
}

impl Bell for Polling {
    async fn rung(&mut self) {
        if self.pause > SLOWEST {
            return std::future::pending().await;
        }
        Clock::boot().pause(self.pause).await;
        self.pause *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rings_less_and_less_often_and_then_no_more() {
        let mut bell = Polling::new();
        let start = tokio::time::Instant::now();
        for _ in 0..7 {
            bell.rung().await;
        }
        assert_eq!(start.elapsed(), Duration::from_millis(127));
        assert!(tokio::time::timeout(Duration::from_secs(3600), bell.rung()).await.is_err());
    }
}
