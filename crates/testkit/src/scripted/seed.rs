//! Faults drawn from a seed: the same seed and the same order of calls give the same faults.

use std::time::Duration;

use leasehold_core::{ClientId, ErrorKind};

use super::{Fault, Verb};

/// The variable that replays a run.
const SEED: &str = "LEASEHOLD_SEED";

/// A source of faults.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Dice of this seed, which prints how to replay them.
    #[expect(
        clippy::print_stderr,
        reason = "a harness captures it and shows it when the test fails, when it is needed"
    )]
    pub(super) fn announced(seed: u64) -> Self {
        eprintln!("scripted faults: replay with {SEED}={seed}");
        Self(seed)
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

    /// A fault for this verb: mostly none, and never one that would wait for ever.
    pub(super) fn draw(&mut self, verb: Verb) -> Fault {
        let roll = self.roll();
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
            (0..500).map(|_| dice.draw(Verb::Attempt)).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        let has = |wanted: fn(&Fault) -> bool| draws(7).iter().any(wanted);
        assert!(has(|fault| matches!(fault, Fault::Late(_))) && has(|fault| matches!(fault, Fault::Slow(_))));
        assert!(has(|fault| *fault == Fault::Lost) && has(|fault| matches!(fault, Fault::Err(_))));
        assert!(has(|fault| *fault == Fault::Ok) && !has(|fault| *fault == Fault::Never));
    }
}
