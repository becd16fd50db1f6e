//! Counts over the last minutes: a ring of short steps, kept in memory.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;
use serde::Serialize;

use crate::view;

/// The length of a step, and how many are kept: a quarter of an hour.
pub(crate) const STEP: Duration = Duration::from_secs(5);
const KEPT: usize = 180;

/// What happened, and how it stood at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tallied {
    pub(crate) acquires: u64,
    pub(crate) waits: u64,
    pub(crate) losses: u64,
    pub(crate) broken: u64,
    pub(crate) held: u64,
    pub(crate) waiting: u64,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    at: String,
    #[serde(skip)]
    step: i64,
    #[serde(flatten)]
    pub(crate) tallied: Tallied,
}

/// The steps, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(VecDeque<Point>);

impl Series {
    /// Adds what was seen now. Events add up; how it stands is replaced.
    pub(crate) fn add(&mut self, now: Timestamp, seen: Tallied) {
        let length = STEP.as_millis() as i64;
        let step = now.as_millisecond().div_euclid(length);
        if self.0.back().is_none_or(|last| last.step != step) {
            let at = Timestamp::from_millisecond(step * length).unwrap_or(now);
            self.0.push_back(Point { at: view::time(at), step, tallied: Tallied::default() });
        }
        let horizon = step - i64::try_from(KEPT).unwrap_or(i64::MAX);
        while self.0.len() > KEPT || self.0.front().is_some_and(|first| first.step <= horizon) {
            self.0.pop_front();
        }
        if let Some(Point { tallied, .. }) = self.0.back_mut() {
            tallied.acquires += seen.acquires;
            tallied.waits += seen.waits;
            tallied.losses += seen.losses;
            tallied.broken += seen.broken;
            (tallied.held, tallied.waiting) = (seen.held, seen.waiting);
        }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.0.iter()
    }

    pub(crate) fn last(&self) -> Option<&Point> {
        self.0.back()
    }

    /// All events of the series, and how it stands.
    pub(crate) fn sum(&self) -> Tallied {
        let mut sum = self.last().map(|last| last.tallied).unwrap_or_default();
        (sum.acquires, sum.waits, sum.losses, sum.broken) = (0, 0, 0, 0);
        for Point { tallied, .. } in &self.0 {
            sum.acquires += tallied.acquires;
            sum.waits += tallied.waits;
            sum.losses += tallied.losses;
            sum.broken += tallied.broken;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_add_up_within_a_step_and_old_steps_go() {
        let mut series = Series::default();
        let at = |seconds: i64| Timestamp::from_second(1_000_000_000 + seconds).unwrap();
        let seen = |acquires, held| Tallied { acquires, held, ..Tallied::default() };
        for (seconds, acquires, held) in [(0, 1, 5), (1, 2, 4), (5, 3, 3)] {
            series.add(at(seconds), seen(acquires, held));
        }
        let points: Vec<_> =
            series.points().map(|point| (point.tallied.acquires, point.tallied.held)).collect();
        assert_eq!(points, [(3, 4), (3, 3)]);
        assert_eq!(series.sum(), seen(6, 3));
        for step in 0..1000 {
            series.add(at(step * 5), seen(1, 0));
        }
        assert_eq!((series.points().count(), series.sum().acquires), (180, 180));
        series.add(at(1_000_000), seen(7, 0));
        assert_eq!(series.sum().acquires, 7, "a long gap leaves nothing of before");
    }

    #[test]
    fn a_clock_that_is_set_back_loses_nothing_but_order() {
        let mut series = Series::default();
        for second in [100, 50, 100] {
            series
                .add(Timestamp::from_second(second).unwrap(), Tallied { acquires: 1, ..Tallied::default() });
        }
        assert_eq!(series.sum().acquires, 3);
    }
}
