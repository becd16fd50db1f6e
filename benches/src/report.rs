//! What was measured, line by line, each beside its target.

use std::fmt::Display;

use crate::alternate::{Comparison, spread};

/// Prints lines and remembers whether a target was missed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    missed: u32,
}

#[expect(clippy::print_stdout, reason = "printing is what a benchmark is for")]
impl Report {
    /// Ours may take at most so many times as long as theirs.
    pub(crate) fn slowdown(&mut self, ours: &str, theirs: &str, comparison: &Comparison, target: f64) {
        let slowdown = comparison.slowdown();
        println!("{ours}: {}", spread(&comparison.ours));
        println!("  {theirs}: {}", spread(&comparison.theirs));
        self.verdict(slowdown <= target, &format!("{slowdown:.2} times as long; target at most {target}"));
    }

    /// Ours must reach at least such a share of the rate of theirs.
    pub(crate) fn rate(&mut self, ours: &str, theirs: &str, comparison: &Comparison, target: f64) {
        let rate = 1.0 / comparison.slowdown();
        println!("{ours}: {}", spread(&comparison.ours));
        println!("  {theirs}: {}", spread(&comparison.theirs));
        self.verdict(rate >= target, &format!("{rate:.2} times the rate; target at least {target}"));
    }

    /// Ours may take at most so much longer than theirs.
    pub(crate) fn excess(
        &mut self,
        ours: &str,
        theirs: &str,
        comparison: &Comparison,
        target: std::time::Duration,
    ) {
        let excess = comparison.excess();
        println!("{ours}: {}", spread(&comparison.ours));
        println!("  {theirs}: {}", spread(&comparison.theirs));
        self.verdict(excess <= target, &format!("{excess:.2?} longer; target at most {target:?}"));
    }

    /// A figure with an upper bound.
    pub(crate) fn at_most(&mut self, what: &str, figure: u64, target: u64) {
        let met = figure <= target;
        self.verdict(met, &format!("{what}: {figure}; target at most {target}"));
    }

    /// Something that could not be measured, and why.
    pub(crate) fn skipped(&mut self, what: &str, why: impl Display) {
        self.missed += 1;
        println!("  NOT MEASURED {what}: {why}");
    }

    /// Whether every target was met.
    pub(crate) fn all_met(&self) -> bool {
        self.missed == 0
    }

    fn verdict(&mut self, met: bool, line: &str) {
        self.missed += u32::from(!met);
        println!("  {} {line}", if met { "ok    " } else { "MISSED" });
    }
}
