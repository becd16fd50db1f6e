//! Two things of one process measured in turn, A B A B…, and their medians.
//!
//! Machines are shared and noisy; seconds taken on one say little on another. Taken in turn, within one run, a
//! passing disturbance hits both sides, and the median ignores it.

use std::time::Instant;

use crate::harness::Spread;

/// One side of a comparison: does the thing so many times.
pub(crate) type Side<'a> = &'a mut dyn FnMut(u32);

/// What a comparison found: nanoseconds for one repetition.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) ours: Spread,
    pub(crate) theirs: Spread,
}

/// Measures both sides in turn: `rounds` times, `times` repetitions each.
pub(crate) fn alternate(
    rounds: u32,
    times: u32,
    ours: Side<'_>,
    theirs: Side<'_>,
) -> Result<Comparison, String> {
    ours(times / 4 + 1);
    theirs(times / 4 + 1);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        other.push(measure(times, theirs));
        one.push(measure(times, ours));
    }
    let spreads = Spread::of(&one).zip(Spread::of(&other));
    spreads.map(|(ours, theirs)| Comparison { ours, theirs }).ok_or_else(|| "no round was run".to_owned())
}

impl Comparison {
    /// How many times as long ours takes.
    pub(crate) fn slowdown(&self) -> f64 {
        self.ours.median / self.theirs.median
    }

    /// A row of a table, in units of so many nanoseconds.
    pub(crate) fn cells(&self, what: &str, unit: f64) -> [String; 4] {
        let scaled = |spread: &Spread| {
            let [median, least, greatest] =
                [spread.median, spread.least, spread.greatest].map(|nanos| nanos / unit);
            Spread { median, least, greatest }.text()
        };
        [what.to_owned(), scaled(&self.ours), scaled(&self.theirs), format!("{:.2}", self.slowdown())]
    }
}

fn measure(times: u32, side: Side<'_>) -> f64 {
    let start = Instant::now();
    side(times);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}
