//! Chance from a seed: the same seed, the same throws.

use std::time::Duration;

/// A source of chance.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The dice of this seed.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Other dice, which these decide.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.roll())
    }

    /// Any number (`SplitMix64`).
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if that is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll().checked_rem(end).unwrap_or(0)
    }

    /// True once in so many throws.
    pub fn one_in(&mut self, throws: u64) -> bool {
        self.below(throws) == 0
    }

    /// A time between these two, the second not included.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let spread = most.saturating_sub(least).as_micros() as u64;
        least + Duration::from_micros(self.below(spread))
    }

    /// A time with this mean such that events come as if by accident: often soon, sometimes late, at most eight times
    /// the mean.
    #[expect(clippy::cast_precision_loss, reason = "a throw of 53 bits is exact")]
    pub fn accident(&mut self, mean: Duration) -> Duration {
        let share = ((self.roll() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        mean.mul_f64((-share.ln()).min(8.0))
    }

    /// One of these; they must not be empty.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let throws = |seed| {
            let mut dice = Dice::of(seed);
            let mut other = dice.fork();
            (0..100).map(|_| (dice.below(50), other.accident(Duration::from_secs(1)))).collect::<Vec<_>>()
        };
        assert_eq!(throws(3), throws(3));
        assert_ne!(throws(3), throws(4));
    }

    #[test]
    fn throws_stay_within_their_limits() {
        let mut dice = Dice::of(1);
        let (least, most) = (Duration::from_millis(5), Duration::from_millis(9));
        for _ in 0..10_000 {
            assert!(dice.below(7) < 7);
            assert!((least..most).contains(&dice.between(least, most)));
            assert!(dice.accident(least) <= least * 8);
        }
        assert_eq!(dice.below(0), 0);
        assert!((0..100).any(|_| dice.one_in(5)));
    }
}
