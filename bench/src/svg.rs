//! Plots as SVG, written by hand: readable on a dark page and on a light one, without a script, a font or a library.

use std::fmt::Write as _;

use crate::{
    chart::{Chart, Series, Shape},
    harness::figure,
};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 44.0;
const PLOT_WIDTH: f64 = 560.0;
const PLOT_HEIGHT: f64 = 300.0;
const BAR: f64 = 24.0;
/// Where the bars of a bar chart begin: after their names.
const BARS: f64 = 220.0;

/// Eight colours that are told apart on both grounds, also by those who see few colours.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8a6fdf", "#7f7f7f"];

const STYLE: &str = "\
<style>
svg { font: 13px system-ui, sans-serif; }
text { fill: #1f2328; } .title { font-size: 15px; font-weight: 600; } .small { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; } .axis { stroke: #59636e; stroke-width: 1; }
.ground { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } .small { fill: #9198a1; } .grid { stroke: #3d444d; } .axis { stroke: #9198a1; }
.ground { fill: #0d1117; }
}
</style>
";

/// The plot as a file.
pub(crate) fn draw(chart: &Chart) -> String {
    match &chart.shape {
        Shape::Lines { series, words } => lines(chart, series, words),
        Shape::Bars(bars) => self::bars(chart, bars),
    }
}

/// From figures to places along an axis.
struct Axis {
    least: f64,
    greatest: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl Axis {
    /// A logarithmic axis over whole powers of ten.
    fn log(figures: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let least = figures.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let greatest = figures.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
        Self { least, greatest: greatest.max(least + 1.0), from, to, is_log: true }
    }

    fn places(count: usize, from: f64, to: f64) -> Self {
        Self { least: 0.0, greatest: (count.max(2) - 1) as f64, from, to, is_log: false }
    }

    fn at(&self, figure: f64) -> f64 {
        let figure = if self.is_log { figure.log10() } else { figure };
        let share = ((figure - self.least) / (self.greatest - self.least)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        let (mut power, mut ticks) = (self.least, Vec::new());
        while power <= self.greatest {
            ticks.push(10_f64.powf(power));
            power += 1.0;
        }
        ticks
    }
}

fn lines(chart: &Chart, series: &[Series], words: &[String]) -> String {
    let xs = series.iter().flat_map(|series| series.points.iter().map(|point| point.0.max(1e-9)));
    let ys = series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let bottom = TOP + PLOT_HEIGHT;
    let y = Axis::log(ys, bottom, TOP);
    let x = if words.is_empty() {
        Axis::log(xs, LEFT, LEFT + PLOT_WIDTH)
    } else {
        Axis::places(words.len(), LEFT, LEFT + PLOT_WIDTH)
    };
    let height = (bottom + 56.0).max(TOP + 20.0 * series.len() as f64 + 20.0);
    let mut out = open(chart, height);
    grid(&mut out, &x, &y, words, bottom);
    for (at, series) in series.iter().enumerate() {
        line(&mut out, series, at, &x, &y);
    }
    text(&mut out, LEFT + PLOT_WIDTH / 2.0, bottom + 40.0, "small", "middle", &chart.x);
    text(&mut out, 8.0, TOP - 8.0, "small", "start", &chart.y);
    out.push_str("</svg>\n");
    out
}

fn grid(out: &mut String, x: &Axis, y: &Axis, words: &[String], bottom: f64) {
    for tick in y.ticks() {
        let at = y.at(tick);
        rule(out, "grid", LEFT, at, LEFT + PLOT_WIDTH, at);
        text(out, LEFT - 8.0, at + 4.0, "small", "end", &label(tick));
    }
    if words.is_empty() {
        for tick in x.ticks() {
            let at = x.at(tick);
            rule(out, "grid", at, TOP, at, bottom);
            text(out, at, bottom + 18.0, "small", "middle", &label(tick));
        }
    } else {
        for (place, word) in words.iter().enumerate() {
            text(out, x.at(place as f64), bottom + 18.0, "small", "middle", word);
        }
    }
    rule(out, "axis", LEFT, bottom, LEFT + PLOT_WIDTH, bottom);
    rule(out, "axis", LEFT, TOP, LEFT, bottom);
}

/// The line, its points, and its name beside the plot. From the ninth on lines are dashed, in the same colours.
fn line(out: &mut String, series: &Series, at: usize, x: &Axis, y: &Axis) {
    let colour = COLOURS[at % COLOURS.len()];
    let dash = if at < COLOURS.len() { "" } else { " stroke-dasharray=\"5 4\"" };
    let place = |point: &(f64, f64)| (x.at(point.0.max(1e-9)), y.at(point.1));
    let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let stroke = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}");
    _ = writeln!(out, "<polyline {stroke} points=\"{}\"/>", path.join(" "));
    for ((x, y), (of, value)) in places.iter().zip(&series.points) {
        let hint = format!("{}: {} at {}", escape(&series.name), figure(*value), figure(*of));
        let dot = format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">");
        _ = writeln!(out, "{dot}<title>{hint}</title></circle>");
    }
    let (left, top) = (LEFT + PLOT_WIDTH + 18.0, TOP + 20.0 * at as f64 + 8.0);
    _ = writeln!(out, "<polyline {stroke} points=\"{left},{top} {},{top}\"/>", left + 20.0);
    text(out, left + 26.0, top + 4.0, "name", "start", &series.name);
}

fn bars(chart: &Chart, bars: &[(String, f64)]) -> String {
    let bottom = TOP + BAR * bars.len() as f64 + 4.0;
    let positive = bars.iter().map(|bar| bar.1).filter(|value| *value > 0.0);
    let x = Axis::log(positive, BARS, WIDTH - 110.0);
    let mut out = open(chart, bottom + 52.0);
    for tick in x.ticks() {
        let at = x.at(tick);
        rule(&mut out, "grid", at, TOP, at, bottom);
        text(&mut out, at, bottom + 18.0, "small", "middle", &label(tick));
    }
    for (at, (name, value)) in bars.iter().enumerate() {
        let top = TOP + BAR * at as f64 + 4.0;
        let colour = if name.starts_with("leasehold") { COLOURS[0] } else { COLOURS[7] };
        let width = if *value > 0.0 { (x.at(*value) - BARS).max(2.0) } else { 0.0 };
        let size = format!("x=\"{BARS}\" y=\"{top}\" width=\"{width:.1}\" height=\"{}\"", BAR - 8.0);
        _ = writeln!(out, "<rect {size} fill=\"{colour}\"/>");
        text(&mut out, BARS - 8.0, top + 12.0, "name", "end", name);
        text(&mut out, BARS + width + 6.0, top + 12.0, "small", "start", &figure(*value));
    }
    rule(&mut out, "axis", BARS, TOP, BARS, bottom);
    text(&mut out, BARS, bottom + 38.0, "small", "start", &chart.x);
    out.push_str("</svg>\n");
    out
}

fn open(chart: &Chart, height: f64) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{}\">\n{STYLE}<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
        escape(&chart.title)
    );
    text(&mut out, 8.0, 20.0, "title", "start", &chart.title);
    out
}

fn rule(out: &mut String, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
    let ends = format!("x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"");
    _ = writeln!(out, "<line class=\"{class}\" {ends}/>");
}

fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
    let words = escape(words);
    _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

fn label(tick: f64) -> String {
    match tick {
        tick if tick >= 1e6 => format!("{} M", tick / 1e6),
        tick if tick >= 1e3 => format!("{} k", tick / 1e3),
        tick if tick >= 1.0 => format!("{tick:.0}"),
        tick => format!("{tick:.*}", (-tick.log10()).ceil().max(0.0) as usize),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_puts_equal_ratios_at_equal_distances() {
        let axis = Axis::log([1.0, 1000.0].into_iter(), 0.0, 300.0);
        let places = [1.0, 10.0, 1000.0].map(|value| format!("{:.0}", axis.at(value)));
        assert_eq!(places, ["0", "100", "300"]);
        assert_eq!(axis.ticks().len(), 4);
    }

    #[test]
    fn names_cannot_break_the_file() {
        let chart = Chart::bars("a < b & \"c\"", "x", vec![("<script>".to_owned(), 1.0)]);
        let drawn = draw(&chart);
        assert!(!drawn.contains("<script>") && drawn.contains("a &lt; b &amp; &quot;c&quot;"));
    }
}
