//! What came out: targets with their figures, tables, plots, and what was wrong.

use std::collections::BTreeMap;

use crate::{
    chart::Chart,
    harness::figure,
    targets::{TARGETS, Target, Want},
};

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    measured: BTreeMap<&'static str, Result<f64, String>>,
    pub(crate) tables: Vec<Table>,
    pub(crate) charts: Vec<(String, Chart)>,
    /// What other programs printed, under a title each.
    pub(crate) texts: Vec<(String, String)>,
    /// Of ours, something did not run or was not exact: the run fails.
    pub(crate) wrong: Vec<String>,
    /// Of others: the page says so.
    pub(crate) others_wrong: Vec<String>,
}

/// A table of the page.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Findings {
    /// Keeps the figure of a target, or why there is none.
    pub(crate) fn target(&mut self, id: &'static str, measured: Result<f64, String>) {
        debug_assert!(TARGETS.iter().any(|target| target.id == id), "{id} is no target");
        self.measured.insert(id, measured);
    }

    /// Of one against the other, if both were measured.
    pub(crate) fn ratio(&mut self, id: &'static str, one: Option<f64>, other: Option<f64>, without: &str) {
        let measured = match (one, other) {
            (Some(one), Some(other)) => Ok(one / other),
            _ => Err(without.to_owned()),
        };
        self.target(id, measured);
    }

    /// Something came out wrong, or could not be run.
    pub(crate) fn wrong(&mut self, is_ours: bool, what: String) {
        crate::say(&format!("\nWRONG: {what}"));
        if is_ours { self.wrong.push(what) } else { self.others_wrong.push(what) }
    }

    /// All targets: what, the bound, what was measured, the verdict.
    pub(crate) fn verdicts(&self) -> Vec<[String; 4]> {
        TARGETS.iter().map(|target| self.verdict(target)).collect()
    }

    /// Those that were measured and not reached.
    pub(crate) fn missed(&self) -> Vec<&'static Target> {
        let is_missed = |target: &&Target| matches!(self.measured.get(target.id), Some(Ok(measured)) if !target.want.is_met(*measured));
        TARGETS.iter().filter(is_missed).collect()
    }

    fn verdict(&self, target: &Target) -> [String; 4] {
        let (sign, bound) = match target.want {
            Want::AtLeast(bound) => ("≥", bound),
            Want::AtMost(bound) => ("≤", bound),
        };
        let wanted = format!("{sign} {bound}{}", target.unit);
        let (measured, verdict) = match self.measured.get(target.id) {
            Some(Ok(measured)) => {
                let verdict = if target.want.is_met(*measured) { "met" } else { "**missed**" };
                (format!("{}{}", figure(*measured), target.unit), verdict)
            }
            Some(Err(why)) => (why.clone(), "not measured"),
            None => ("not part of this run".to_owned(), "not measured"),
        };
        [target.what.to_owned(), wanted, measured, verdict.to_owned()]
    }
}

impl Table {
    pub(crate) fn new(title: &str, note: &str, head: &[&str]) -> Self {
        let head = head.iter().map(|word| (*word).to_owned()).collect();
        Self { title: title.to_owned(), note: note.to_owned(), head, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}
