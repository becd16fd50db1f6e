//! Plots as SVG, written by hand: two kinds are all that is needed, and a page with them needs nothing else.

#![expect(clippy::cast_precision_loss, reason = "figures for people; no count of a run comes near 2^53")]

use std::fmt::Write as _;

use super::outcome::Quantile;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 170.0;

/// Room for what the axes say.
const LEFT: f64 = 62.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 12.0;

/// A point, both coordinates between 0 and 1.
type Point = (f64, f64);

/// Latency by the share of operations that were no slower: each tenfold step towards the slowest is as wide.
pub(crate) fn distribution(quantiles: &[Quantile]) -> String {
    let Some(last) = quantiles.last() else { return empty() };
    let nines = |share: f64| -(1.0 - share).log10();
    let most = nines(last.share).max(1.0);
    let (low, high) = decades(quantiles.iter().map(|quantile| quantile.latency));
    let scale = |latency: f64| (latency.max(low).log10() - low.log10()) / (high.log10() - low.log10());
    let points: Vec<Point> =
        quantiles.iter().map(|quantile| (nines(quantile.share) / most, scale(quantile.latency))).collect();
    let shares = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
    let across = shares.iter().filter(|(share, _)| nines(*share) <= most);
    let across: Vec<_> = across.map(|(share, label)| (nines(*share) / most, (*label).to_owned())).collect();
    let mut up = Vec::new();
    let mut decade = low;
    while decade <= high * 1.001 {
        up.push((scale(decade), duration(decade)));
        decade *= 10.0;
    }
    draw("Latency by share of operations", &points, &across, &up)
}

/// Operations per second, over time.
pub(crate) fn timeline(tenths: &[u64]) -> String {
    if tenths.len() < 2 {
        return empty();
    }
    let top = nice(tenths.iter().copied().max().unwrap_or(1).max(1) as f64 * 10.0);
    let last = (tenths.len() - 1) as f64;
    let point = |(at, count): (usize, &u64)| (at as f64 / last, *count as f64 * 10.0 / top);
    let points: Vec<Point> = tenths.iter().enumerate().map(point).collect();
    let seconds = tenths.len() as f64 / 10.0;
    let across = [0.0, 0.5, 1.0].map(|share| (share, format!("{:.1} s", seconds * share)));
    let up = [0.0, 0.5, 1.0].map(|share| (share, format!("{:.0}/s", top * share)));
    draw("Operations per second", &points, &across, &up)
}

fn draw(title: &str, points: &[Point], across: &[(f64, String)], up: &[(f64, String)]) -> String {
    let x = |share: f64| LEFT + share * (WIDTH - LEFT - RIGHT);
    let y = |share: f64| HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>"
    );
    for (share, label) in up {
        let (y, right, text) = (y(*share), WIDTH - RIGHT, LEFT - 6.0);
        let _ = write!(svg, "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>");
        let _ = write!(svg, "<text x=\"{text}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", y + 4.0);
    }
    for (share, label) in across {
        let (x, text) = (x(*share), HEIGHT - BOTTOM + 18.0);
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{text}\" text-anchor=\"middle\">{label}</text>");
    }
    let path: Vec<String> =
        points.iter().map(|(across, up)| format!("{:.1},{:.1}", x(*across), y(*up))).collect();
    let _ = write!(svg, "<polyline points=\"{}\"/></svg>", path.join(" "));
    svg
}

fn empty() -> String {
    "<p>too few operations to draw</p>".to_owned()
}

/// Powers of ten around all values.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, 1e-3), |(low, high), value| (value.min(low), value.max(high)));
    let low = 10_f64.powf(low.max(1e-3).log10().floor());
    (low, 10_f64.powf(high.log10().ceil()).max(low * 10.0))
}

/// The next number upwards that begins with 1, 2 or 5.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

/// Microseconds in the unit that fits.
pub(crate) fn duration(micros: f64) -> String {
    match micros {
        ..1.0 => format!("{:.0} ns", micros * 1000.0),
        1.0..10.0 => format!("{} µs", brief(micros)),
        10.0..1000.0 => format!("{micros:.0} µs"),
        1000.0..1e6 => format!("{} ms", brief(micros / 1000.0)),
        _ => format!("{} s", brief(micros / 1e6)),
    }
}

/// One decimal where it says something.
fn brief(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        let shown = [0.25, 1.5, 10.0, 250.4, 1000.0, 15_340.0, 2_000_000.0].map(duration);
        assert_eq!(shown, ["250 ns", "1.5 µs", "10 µs", "250 µs", "1 ms", "15.3 ms", "2 s"]);
    }

    #[test]
    fn axes_begin_and_end_at_round_numbers() {
        let around = |values: &[f64]| format!("{:?}", decades(values.iter().copied()));
        assert_eq!(around(&[30.0, 4500.0]), "(10.0, 10000.0)");
        assert_eq!(around(&[10.0]), "(10.0, 100.0)");
        assert_eq!(format!("{:?}", [1.0, 3.0, 70.0, 999.0].map(nice)), "[1.0, 5.0, 100.0, 1000.0]");
    }

    #[test]
    fn what_is_drawn_stays_within_the_frame() {
        let quantile = |share, latency| Quantile { share, latency };
        let svg = distribution(&[quantile(0.0, 12.0), quantile(0.5, 80.0), quantile(0.995, 9000.0)]);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        for point in points.split(' ') {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y), "{point}");
        }
        assert!(timeline(&[1]).contains("too few") && distribution(&[]).contains("too few"));
        assert!(timeline(&[0, 5, 10]).contains("100/s"));
    }
}
