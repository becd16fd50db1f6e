//! What a scenario came to, as a value: for the table, for programs and for the page.

#![expect(clippy::cast_precision_loss, reason = "figures for people; no count of a run comes near 2^53")]

use std::time::Duration;

use hdrhistogram::Histogram;
use leasehold::backend::StoreInfo;
use serde::Serialize;

use super::{scenario::Scenario, stage::Stage};

/// A whole run. The JSON form is a promise to programs.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) store: String,
    pub(crate) version: &'static str,
    pub(crate) clients: usize,
    pub(crate) scenarios: Vec<Outcome>,
}

/// One scenario. Times are in microseconds unless their names say otherwise.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) scenario: Scenario,
    /// What one operation is.
    pub(crate) operation: &'static str,
    pub(crate) tasks: usize,
    pub(crate) seconds: f64,
    pub(crate) operations: u64,
    pub(crate) per_second: f64,
    pub(crate) latency: Latency,
    /// Processor time of this process, of all that one processor has.
    pub(crate) cpu: f64,
    pub(crate) failed: u64,
    pub(crate) lost: u64,
    /// The first error.
    pub(crate) error: Option<String>,
    /// Nobody was let in beside somebody else.
    pub(crate) exact: bool,
    /// How that was not so.
    pub(crate) wrong: Option<String>,
    /// Latency by the share of operations that were no slower.
    pub(crate) distribution: Vec<Quantile>,
    /// Operations in each tenth of a second.
    pub(crate) timeline: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Quantile {
    pub(crate) share: f64,
    pub(crate) latency: f64,
}

/// How a scenario ran, beside what its meter says.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
    pub(crate) timeline: Vec<u64>,
}

impl Report {
    pub(crate) fn new(info: &StoreInfo, clients: usize) -> Self {
        let (store, version) = (info.address.clone(), env!("CARGO_PKG_VERSION"));
        Self { store, version, clients, scenarios: Vec::new() }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.scenarios.iter().all(|outcome| outcome.exact)
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.scenarios.iter().any(|outcome| outcome.failed > 0)
    }
}

impl Outcome {
    pub(crate) fn new(scenario: Scenario, stage: &Stage, course: Course) -> Self {
        let (latencies, firsts) = (stage.meter.latencies(), stage.meter.firsts());
        let seconds = course.took.as_secs_f64();
        let operations = stage.meter.done();
        Self {
            scenario,
            operation: scenario.operation(),
            tasks: stage.tasks,
            seconds,
            operations,
            per_second: operations as f64 / seconds.max(1e-9),
            latency: Latency::of(&latencies),
            cpu: course.cpu.as_secs_f64() / seconds.max(1e-9),
            failed: stage.meter.failures(),
            lost: stage.meter.losses(),
            error: firsts.error,
            exact: firsts.wrong.is_none(),
            wrong: firsts.wrong,
            distribution: distribution(&latencies),
            timeline: course.timeline,
        }
    }
}

impl Latency {
    fn of(latencies: &Histogram<u64>) -> Self {
        let at = |quantile| micros(latencies.value_at_quantile(quantile));
        let min = if latencies.is_empty() { 0 } else { latencies.min() };
        Self {
            min: micros(min),
            mean: latencies.mean() / 1000.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: micros(latencies.max()),
        }
    }
}

/// Finer and finer towards the slowest, as far as there are operations to tell apart.
fn distribution(latencies: &Histogram<u64>) -> Vec<Quantile> {
    let mut all = Vec::new();
    let (mut left, fewest) = (1.0_f64, 0.5 / (latencies.len().max(1) as f64));
    while left > fewest {
        let share = 1.0 - left;
        all.push(Quantile { share, latency: micros(latencies.value_at_quantile(share)) });
        left *= 0.8;
    }
    all
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_goes_as_far_as_there_is_something_to_tell() {
        let mut latencies = Histogram::<u64>::new(3).unwrap();
        assert_eq!(Latency::of(&latencies).min.to_bits(), 0.0_f64.to_bits());
        for nanos in 1..=1000 {
            latencies.record(nanos * 1000).unwrap();
        }
        let shares = distribution(&latencies);
        let last = shares.last().unwrap();
        assert!(last.share > 0.999 && last.latency >= 999.0, "{last:?}");
        assert!(shares.is_sorted_by(|a, b| a.latency <= b.latency));
        let latency = Latency::of(&latencies);
        assert!(
            (499.0..=501.0).contains(&latency.p50) && (989.0..=991.0).contains(&latency.p99),
            "{latency:?}"
        );
    }
}
