//! What a program says at the end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Of all latencies, those that this share is not above.
pub const QUANTILES: [f64; 10] = [0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999];

/// What came of a scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// How many acquisitions there were, each with its release.
    pub done: u64,
    /// All acquisitions since `go`, before and after those that count included; 0 if it cannot tell.
    pub total: u64,
    /// How long those that count took.
    pub seconds: f64,
    /// Processor time of the program meanwhile, in seconds; 0 if it cannot tell.
    pub cpu: f64,
    /// Calls of the library that failed.
    pub errors: u64,
    /// Latencies in microseconds at [`QUANTILES`].
    pub micros: Vec<f64>,
    /// Allocations per acquisition, if it counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocations: Option<f64>,
    /// Memory in bytes, before and after what was asked was set up; 0 if it cannot tell.
    pub resident: [u64; 2],
}

impl Said {
    /// Keeps the quantiles of what was measured.
    pub fn latencies(&mut self, mut all: Vec<Duration>) {
        all.sort_unstable();
        let at = |share: f64| all.get(((all.len().saturating_sub(1)) as f64 * share) as usize);
        let micros = |share: &f64| at(*share).map(|latency| latency.as_secs_f64() * 1e6);
        self.micros = QUANTILES.iter().filter_map(micros).collect();
    }

    /// The latency that this share is not above, in microseconds.
    pub fn micros_at(&self, share: f64) -> f64 {
        let at = QUANTILES.iter().position(|quantile| (quantile - share).abs() < 1e-9);
        at.and_then(|at| self.micros.get(at)).copied().unwrap_or(f64::NAN)
    }

    /// How many in a second.
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.seconds
    }
}
