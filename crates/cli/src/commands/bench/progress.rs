//! How a scenario is getting on: a line on a terminal, and a note for the page.

#![expect(clippy::cast_precision_loss, reason = "figures for people; no count of a run comes near 2^53")]

use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

use super::{meter::Meter, scenario::Scenario};
use crate::print::{self, Volume};

/// How often it looks.
const STEP: Duration = Duration::from_millis(100);

/// How wide the bar is.
const WIDTH: usize = 20;

/// Watches one scenario.
#[derive(Debug)]
pub(crate) struct Progress {
    shows: bool,
    pub(crate) timeline: Vec<u64>,
}

impl Progress {
    /// Shows itself only to somebody who looks, and wants to.
    pub(crate) fn new(volume: Volume) -> Self {
        Self { shows: volume > Volume::Quiet && io::stderr().is_terminal(), timeline: Vec::new() }
    }

    /// Takes note of how many operations there were, step by step, for ever.
    pub(crate) async fn watch(&mut self, scenario: Scenario, meter: &Meter, time: Duration) {
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(STEP);
        ticks.tick().await;
        let mut before = 0;
        loop {
            ticks.tick().await;
            let done = meter.done();
            self.timeline.push(done - before);
            before = done;
            if self.shows {
                print::over(&line(scenario, done, begun.elapsed(), time));
            }
        }
    }

    /// Leaves the line to whatever comes next.
    pub(crate) fn clear(&self) {
        if self.shows {
            print::over("");
        }
    }
}

fn line(scenario: Scenario, done: u64, elapsed: Duration, time: Duration) -> String {
    let full = WIDTH.min((elapsed.as_millis() * WIDTH as u128 / time.as_millis().max(1)) as usize);
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let bar: String = "#".repeat(full) + &"-".repeat(WIDTH - full);
    format!("{:<12} [{bar}] {:>4.1}s  {done} done, {rate:.0}/s", scenario.name(), elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is() {
        let (half, whole) = (Duration::from_secs(1), Duration::from_secs(2));
        let half = line(Scenario::Rw, 500, half, whole);
        assert_eq!(half, "rw           [##########----------]  1.0s  500 done, 500/s");
        assert!(line(Scenario::Rw, 1, whole * 2, whole).contains(&"#".repeat(WIDTH)));
    }
}
