//! Two things measured in turn, A B A B…, and the ratio of their medians.
//!
//! Machines are shared and noisy; seconds taken on one say little on another. Taken in turn, within one run, a
//! passing disturbance hits both sides, and the median ignores it.

use std::time::{Duration, Instant};

/// One side of a comparison: does the thing so many times.
pub(crate) type Side<'a> = &'a mut dyn FnMut(u32);

/// What a comparison found: nanoseconds for one repetition, round by round, in ascending order. Not whole ones: of a
/// mutex's twenty, the fraction matters.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) ours: Vec<f64>,
    pub(crate) theirs: Vec<f64>,
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
    comparison.ours.sort_unstable_by(f64::total_cmp);
    comparison.theirs.sort_unstable_by(f64::total_cmp);
    comparison
}

impl Comparison {
    /// How many times as long ours takes.
    pub(crate) fn slowdown(&self) -> f64 {
        median(&self.ours) / median(&self.theirs)
    }

    /// How much longer ours takes.
    pub(crate) fn excess(&self) -> Duration {
        duration(median(&self.ours) - median(&self.theirs))
    }
}

/// The middle and the spread, `12µs (11µs–15µs)`.
pub(crate) fn spread(sorted: &[f64]) -> String {
    let (first, last) =
        (sorted.first().copied().unwrap_or_default(), sorted.last().copied().unwrap_or_default());
    format!("{} ({}–{})", readable(median(sorted)), readable(first), readable(last))
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Nanoseconds in the unit that suits them.
fn readable(nanos: f64) -> String {
    if nanos < 1000.0 { format!("{nanos:.1}ns") } else { format!("{:.2?}", duration(nanos)) }
}

fn duration(nanos: f64) -> Duration {
    Duration::from_secs_f64(nanos.max(0.0) / 1e9)
}

fn measure(times: u32, side: Side<'_>) -> f64 {
    let start = Instant::now();
    side(times);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}
