//! The counter behind ids: a time in milliseconds and a sequence below it, as one number that only grows.
//!
//! It follows the clock when that is ahead, and counts on when it is not: a clock that was set back, or that shows the same
//! millisecond for more than 4096 ids, makes it borrow from the milliseconds to come, one by one. It never passes the time
//! that is reserved for it in the store. No clock is read here and nothing is sent.

/// Bits of the sequence.
pub(crate) const SEQUENCE: u32 = 12;

/// A time in milliseconds and, in the lowest bits, a sequence.
pub(crate) type Stamp = u64;

/// What was counted, and how far it may go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    /// The least that was not given out.
    next: Stamp,
    /// The first millisecond that is not ours.
    until: u64,
}

impl Counter {
    /// The next, at this time; `None` when that would be beyond what is reserved.
    pub(crate) fn draw(&mut self, now: u64) -> Option<Stamp> {
        let stamp = self.next.max(now << SEQUENCE);
        if stamp >> SEQUENCE >= self.until {
            return None;
        }
        self.next = stamp + 1;
        Some(stamp)
    }

    /// The first millisecond that is worth reserving at this time.
    pub(crate) fn wanted(&self, now: u64) -> u64 {
        now.max(self.next >> SEQUENCE)
    }

    /// The time until then is ours, but for what was another's, before `floor`.
    pub(crate) fn reserved(&mut self, floor: u64, until: u64) {
        self.next = self.next.max(floor << SEQUENCE);
        self.until = self.until.max(until);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};

    use super::*;

    #[test]
    fn the_time_is_that_of_the_clock_while_it_goes_on() {
        let mut counter = Counter::default();
        counter.reserved(0, 100);
        assert_eq!(counter.draw(7), Some(7 << SEQUENCE));
        assert_eq!(counter.draw(7), Some((7 << SEQUENCE) + 1));
        assert_eq!(counter.draw(9), Some(9 << SEQUENCE));
    }

    #[test]
    fn a_clock_that_is_set_back_makes_it_count_on() {
        let mut counter = Counter::default();
        counter.reserved(0, 100);
        counter.draw(50);
        assert_eq!(counter.draw(3), Some((50 << SEQUENCE) + 1));
    }

    #[test]
    fn a_full_millisecond_borrows_from_the_next() {
        let mut counter = Counter::default();
        counter.reserved(0, 100);
        let drawn: Vec<Stamp> = (0..=1 << SEQUENCE).map_while(|_| counter.draw(5)).collect();
        assert_eq!(drawn.last(), Some(&(6 << SEQUENCE)));
    }

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        /// Whatever the clock shows, and whenever one takes over from the other: no stamp twice, none below an earlier one,
        /// none beyond what was reserved.
        #[test]
        fn stamps_only_grow_through_any_clock(steps in vec((0_u64..5000, 0_u64..50, any::<bool>()), 1..300)) {
            let (mut counter, mut until, mut last) = (Counter::default(), 0, None);
            for (now, reach, is_another) in steps {
                if is_another {
                    counter = Counter::default();
                }
                let Some(stamp) = counter.draw(now) else {
                    let floor = until;
                    until = counter.wanted(now).max(floor) + reach;
                    counter.reserved(if is_another { floor } else { 0 }, until);
                    continue;
                };
                assert!(last < Some(stamp), "{last:?}, then {stamp}");
                assert!(stamp >> SEQUENCE < until);
                last = Some(stamp);
            }
        }
    }
}
