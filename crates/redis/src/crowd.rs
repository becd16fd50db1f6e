//! How a crowd makes way for itself.
//!
//! The message that a lock is free wakes everybody who waits for it, one in each process, and one of them can have it. If
//! all of a crowd went at once, the server would be busy telling them that they cannot. So each draws a moment within the
//! next milliseconds: the first find it free, and the others come when it may be free again. A few go at once, as before.
//!
//! How many there are is what they said of themselves. It may be out of date, and costs nobody more than [`MOST`] then.

use std::time::Duration;

/// So many others are no crowd.
const FEW: usize = 7;

/// Of those beyond them, so many go at the same moment, about.
const AT_ONCE: usize = 2;

/// The unit of a later moment: timers know none that is shorter.
const MOMENT: Duration = Duration::from_millis(1);

/// However many there are, nobody stands back for more moments.
const MOST: u32 = 32;

/// How long one of a crowd with so many others stands back, by a chance from 0 to 1.
pub(crate) fn stands_back(others: usize, chance: impl FnOnce() -> f64) -> Duration {
    let moments =
        u32::try_from(others.saturating_sub(FEW) / AT_ONCE).map_or(MOST, |moments| moments.min(MOST));
    if moments == 0 {
        return Duration::ZERO;
    }
    let spread = (MOMENT * (moments + 1)).mul_f64(chance());
    // Whole moments: a timer would make the next one of any part.
    Duration::from_millis(spread.as_millis() as u64).min(MOMENT * moments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_go_at_once_and_a_crowd_is_spread_evenly() {
        for chance in [0.0, 0.5, 1.0] {
            assert_eq!(stands_back(FEW + 1, || chance), Duration::ZERO);
        }
        let spread: Vec<_> = (0..9).map(|at| stands_back(FEW + 16, || (f64::from(at) + 0.5) / 9.0)).collect();
        let even: Vec<_> = (0..9).map(|moments| MOMENT * moments).collect();
        assert_eq!(spread, even);
        assert_eq!(stands_back(FEW + 16, || 0.0), Duration::ZERO);
        assert_eq!(stands_back(FEW + 16, || 1.0), MOMENT * 8);
        assert_eq!(stands_back(usize::MAX, || 1.0), MOMENT * MOST);
    }
}
