//! What was measured, by whom and at what size, round by round.

use std::collections::BTreeMap;

/// Figures of one kind: for each contender and size, one per round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(BTreeMap<(String, usize), Vec<f64>>);

/// The middle of some figures, and the least and greatest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Samples {
    pub(crate) fn push(&mut self, name: &str, size: usize, figure: f64) {
        self.0.entry((name.to_owned(), size)).or_default().push(figure);
    }

    pub(crate) fn spread(&self, name: &str, size: usize) -> Option<Spread> {
        Spread::of(self.0.get(&(name.to_owned(), size))?)
    }

    pub(crate) fn median(&self, name: &str, size: usize) -> Option<f64> {
        Some(self.spread(name, size)?.median)
    }

    /// Size and median, for a plot.
    pub(crate) fn points(&self, name: &str) -> Vec<(f64, f64)> {
        let own = self.0.iter().filter(|((of, _), _)| of == name);
        own.filter_map(|((_, size), all)| Some((*size as f64, Spread::of(all)?.median))).collect()
    }
}

impl Spread {
    pub(crate) fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.iter().copied().filter(|figure| figure.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: sorted[sorted.len() / 2], least, greatest })
    }

    /// `12.3 (11.9–14.0)`, or only the figure if there is one.
    pub(crate) fn text(&self) -> String {
        if self.least >= self.greatest {
            return figure(self.median);
        }
        format!("{} ({}–{})", figure(self.median), figure(self.least), figure(self.greatest))
    }
}

/// Three digits or so, whatever the size.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2} M", value / 1e6),
        size if size >= 1e4 => format!("{:.1} k", value / 1e3),
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
