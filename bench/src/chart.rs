//! A plot as data: what is shown, not how.

/// Lines over a scale, or bars with names.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) shape: Shape,
}

/// Which kind of plot.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Lines; both axes are logarithmic, unless `words` name the places along the first, which are 0, 1, 2….
    Lines { series: Vec<Series>, words: Vec<String> },
    /// Bars on a logarithmic axis.
    Bars(Vec<(String, f64)>),
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Chart {
    /// Lines over a logarithmic scale.
    pub(crate) fn lines(title: &str, x: &str, y: &str, series: Vec<Series>) -> Self {
        Self::over(title, x, y, series, Vec::new())
    }

    /// Lines over named places.
    pub(crate) fn over(title: &str, x: &str, y: &str, series: Vec<Series>, words: Vec<String>) -> Self {
        let series = series.into_iter().filter_map(Series::drawable).collect();
        Self { title: title.into(), x: x.into(), y: y.into(), shape: Shape::Lines { series, words } }
    }

    /// Bars, the shortest first.
    pub(crate) fn bars(title: &str, x: &str, mut bars: Vec<(String, f64)>) -> Self {
        bars.retain(|(_, value)| value.is_finite());
        bars.sort_by(|one, other| one.1.total_cmp(&other.1));
        Self { title: title.into(), x: x.into(), y: String::new(), shape: Shape::Bars(bars) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.shape {
            Shape::Lines { series, .. } => series.is_empty(),
            Shape::Bars(bars) => bars.is_empty(),
        }
    }
}

impl Series {
    pub(crate) fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points }
    }

    /// A logarithm has no room for what is not above zero.
    fn drawable(mut self) -> Option<Self> {
        self.points.retain(|(x, y)| x.is_finite() && y.is_finite() && *y > 0.0 && *x >= 0.0);
        (!self.points.is_empty()).then_some(self)
    }
}
