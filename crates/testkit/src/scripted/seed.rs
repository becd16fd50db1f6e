//! Chance drawn from a seed: the same seed and the same order of calls give the same faults, and the same schedule.

use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::Duration,
};

use leasehold_core::{ClientId, ErrorKind};

use super::{Fault, Verb};

/// The variable that replays a run.
const SEED: &str = "LEASEHOLD_SEED";

/// A source of chance that can be replayed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// What a store is like for a while, for those who draw its faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    /// Mostly well; now and then a request is slow, refused or late, or its answer is lost.
    #[default]
    Changeable,
    /// As changeable, and no lease is renewed.
    Unrenewed,
    /// Every request is refused.
    Down,
    /// Requests take longer than a lease to be answered.
    Stalled,
    /// No request arrives and none is answered: what is asked meanwhile is never answered.
    Mute,
}

impl Dice {
    /// Dice of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below this one, which must not be zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// True in so many cases of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Other dice, which these decide.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.roll())
    }

    /// Lets others run first, so often as falls, mostly not at all. In paused time no time passes by it.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub fn pass(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let mut left = if self.chance(40) { 1 + self.below(4) } else { 0 };
        poll_fn(move |context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            // To the end of the queue of those who can run, and no further: time must not pass by it.
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Dice of this seed, which prints how to replay them.
    #[expect(
        clippy::print_stderr,
        reason = "a harness captures it and shows it when the test fails, when it is needed"
    )]
    pub(super) fn announced(seed: u64) -> Self {
        eprintln!("scripted faults: replay with {SEED}={seed}");
        Self(seed)
    }

    /// Dice of the seed to replay, or of a fresh one, which print how to replay them.
    pub fn of_the_day() -> Self {
        Self::announced(Self::seed_of_the_day())
    }

    /// The seed to replay, or a fresh one.
    pub(super) fn seed_of_the_day() -> u64 {
        let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        given.unwrap_or_else(|| {
            let text = ClientId::random().to_string();
            // Short enough to be typed again.
            u64::from_str_radix(&text[..8], 16).unwrap_or(0)
        })
    }

    /// A fault for this verb in this weather: mostly none, and only a mute store lets wait for ever.
    pub(super) fn draw(&mut self, verb: Verb, weather: Weather) -> Fault {
        let roll = self.roll();
        match (weather, verb) {
            (Weather::Unrenewed, Verb::Renew) | (Weather::Down, _) => {
                return Fault::Err(ErrorKind::Unavailable);
            }
            (Weather::Stalled, _) => return Fault::Slow(Duration::from_millis(3_000 + roll % 12_000)),
            (Weather::Mute, _) => return Fault::Never,
            (Weather::Changeable | Weather::Unrenewed, _) => {}
        }
        let delay = Duration::from_millis(self.roll() % 200);
        if verb == Verb::Changed {
            return match roll % 100 {
                0..=9 => Fault::Slow(delay / 10),
                10..=14 => Fault::Lost,
                _ => Fault::Ok,
            };
        }
        match roll % 100 {
            0..=7 => Fault::Lost,
            8..=13 => Fault::Late(delay),
            14..=21 => Fault::Slow(delay),
            22..=29 => Fault::Err(ErrorKind::Unavailable),
            _ => Fault::Ok,
        }
    }

    /// `SplitMix64`: one addition and two multiplications spread any seed over all bits.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_script_and_every_sort_of_fault() {
        let draws = |seed| {
            let mut dice = Dice::announced(seed);
            (0..500).map(|_| dice.draw(Verb::Attempt, Weather::Changeable)).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        let has = |wanted: fn(&Fault) -> bool| draws(7).iter().any(wanted);
        assert!(has(|fault| matches!(fault, Fault::Late(_))) && has(|fault| matches!(fault, Fault::Slow(_))));
        assert!(has(|fault| *fault == Fault::Lost) && has(|fault| matches!(fault, Fault::Err(_))));
        assert!(has(|fault| *fault == Fault::Ok) && !has(|fault| *fault == Fault::Never));
    }
}
