//! The nemesis: one stream of faults for the workers and one for the store, both from the dice of the seed, so that
//! they overlap as accidents do.

use std::{
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use leasehold_testkit::history::{Hit, Window};

use crate::{
    clock::{now, rest},
    dice::Dice,
    fleet::Fleet,
    packs::{Hazard, Pack},
};

/// The mean time between two faults of a stream, where nothing else is said.
pub const CALM: Duration = Duration::from_millis(1200);

/// What a stream of faults is like.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The lease of the run: some faults are interesting only beyond it.
    pub lease: Duration,
    /// The mean time between two faults.
    pub calm: Duration,
    /// When it is over.
    pub end: Instant,
}

/// Everything that was done, in the order in which it ended. Both streams write to it.
#[derive(Debug, Default)]
pub struct Diary(Mutex<Vec<Window>>);

impl Diary {
    fn note(&self, kind: &str, hit: Hit, [from, until]: [u64; 2]) {
        let window = Window { kind: kind.to_owned(), hit, from, until };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(window);
    }

    /// All of it.
    pub fn windows(self) -> Vec<Window> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Torments the store until then; it is whole when this returns.
///
/// # Errors
/// If the store could not be brought back.
pub fn torment(pack: &mut dyn Pack, weather: Weather, mut dice: Dice, diary: &Diary) -> io::Result<()> {
    let faults = pack.faults();
    while !faults.is_empty() && weather.pause(&mut dice) {
        let fault = *dice.choose(faults);
        let from = now();
        pack.inflict(fault, weather.lease, &mut dice)
            .map_err(|error| io::Error::other(format!("{fault}: {error}")))?;
        diary.note(fault, Hit::Store, [from, now()]);
    }
    Ok(())
}

/// Harasses the workers until then; all run when this returns.
///
/// # Errors
/// If a worker could not be replaced, or ended by itself.
pub fn harass(
    fleet: &mut Fleet,
    hazards: &[Hazard],
    weather: Weather,
    mut dice: Dice,
    diary: &Diary,
) -> io::Result<()> {
    let lease = weather.lease;
    while weather.pause(&mut dice) {
        if let Some(deserter) = fleet.deserter()? {
            return Err(io::Error::other(deserter));
        }
        if hazards.is_empty() {
            continue;
        }
        let hazard = *dice.choose(hazards);
        let place = dice.below(fleet.places() as u64) as usize;
        let from = now();
        match hazard {
            Hazard::Kill => {
                let process = fleet.kill(place)?;
                // What the dead held is free at the earliest from here on: recovery counts from the beginning.
                diary.note(hazard.kind(), Hit::Killed(process), [from, from]);
                rest(dice.between(Duration::ZERO, lease / 2));
                fleet.replace(place)?;
            }
            Hazard::Pause => {
                let process = fleet.pause(place)?;
                rest(dice.between(lease / 8, lease * 2));
                fleet.resume(place)?;
                diary.note(hazard.kind(), Hit::Stopped(process), [from, now()]);
            }
        }
    }
    Ok(())
}

impl Weather {
    /// Waits for the next accident; false if it would come too late.
    fn pause(&self, dice: &mut Dice) -> bool {
        let pause = dice.accident(self.calm);
        let left = self.end.saturating_duration_since(Instant::now());
        rest(pause.min(left));
        pause < left
    }
}
