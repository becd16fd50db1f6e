//! Two things measured in turn, A B A B…, and the ratio of their medians.
//!
//! Machines are shared and noisy; seconds taken on one say little on another. Taken in turn, within one run, a
//! passing disturbance hits both sides, and the median ignores it.

use std::time::{Duration, Instant};

/// One side of a comparison: does the thing so many times.
pub(crate) type Side<'a> = &'a mut dyn FnMut(u32);

/// What a comparison found.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) ours: Vec<Duration>,
    pub(crate) theirs: Vec<Duration>,
}

/// Measures both sides in turn: `rounds` times, `times` repetitions each.
pub(crate) fn alternate(rounds: u32, times: u32, ours: Side<'_>, theirs: Side<'_>) -> Comparison {
    ours(times / 4 + 1);
    theirs(times / 4 + 1);
    let mut comparison = Comparison { ours: Vec::new(), theirs: Vec::new() };
    for _ in 0..rounds {
        comparison.theirs.push(measure(times, theirs));
        comparison.ours.push(measure(times, ours));
    }
    comparison.ours.sort_unstable();
    comparison.theirs.sort_unstable();
    comparison
}

impl Comparison {
    /// How many times as long ours takes.
    pub(crate) fn slowdown(&self) -> f64 {
        median(&self.ours).as_secs_f64() / median(&self.theirs).as_secs_f64()
    }

    /// How much longer ours takes.
    pub(crate) fn excess(&self) -> Duration {
        median(&self.ours).saturating_sub(median(&self.theirs))
    }
}

/// The middle and the spread, `12µs (11µs–15µs)`.
pub(crate) fn spread(sorted: &[Duration]) -> String {
    let (first, last) =
        (sorted.first().copied().unwrap_or_default(), sorted.last().copied().unwrap_or_default());
    format!("{:.2?} ({first:.2?}–{last:.2?})", median(sorted))
}

fn median(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn measure(times: u32, side: Side<'_>) -> Duration {
    let start = Instant::now();
    side(times);
    start.elapsed() / times
}
