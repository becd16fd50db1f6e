//! The report as one page: a table and plots, with nothing loaded from anywhere.

use std::fmt::Write as _;

use super::{
    outcome::{Outcome, Report},
    plot,
};

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #d5dae0}\
th:first-child,td:first-child{text-align:left}td{font-variant-numeric:tabular-nums}\
.plots{display:flex;flex-wrap:wrap;gap:1rem}svg{flex:1 1 24rem;max-width:30rem}svg text{font-size:11px;fill:currentColor}\
svg line{stroke:#d5dae0}svg polyline{fill:none;stroke:#0a66c2;stroke-width:2}.bad{color:#b3261e;font-weight:600}\
@media(prefers-color-scheme:dark){body{color:#e6e9ed;background:#14171a}th,td{border-color:#39414a}\
svg line{stroke:#39414a}svg polyline{stroke:#6cb2ff}.bad{color:#ff8a80}}";

/// The whole page.
pub(crate) fn render(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>leasehold bench</title>\
         <style>{STYLE}</style></head><body>\n<h1>leasehold bench</h1>\n<p>Store {}; {} client{} of leasehold {}.</p>\n",
        escape(&report.store),
        report.clients,
        if report.clients == 1 { "" } else { "s" },
        report.version,
    );
    page.push_str(
        "<table><thead><tr><th>Scenario</th><th>Tasks</th><th>Operations</th><th>Per second</th><th>p50</th>\
         <th>p99</th><th>p99.9</th><th>Slowest</th><th>Failed</th><th>Exact</th></tr></thead><tbody>\n",
    );
    report.scenarios.iter().for_each(|outcome| row(&mut page, outcome));
    page.push_str("</tbody></table>\n");
    report.scenarios.iter().for_each(|outcome| section(&mut page, outcome));
    page.push_str("</body></html>\n");
    page
}

fn row(page: &mut String, outcome: &Outcome) {
    let latency = &outcome.latency;
    let [p50, p99, p999, max] = [latency.p50, latency.p99, latency.p999, latency.max].map(plot::duration);
    let exact = if outcome.exact { "<td>yes</td>" } else { "<td class=\"bad\">no</td>" };
    let _ = writeln!(
        page,
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.0}</td><td>{p50}</td><td>{p99}</td><td>{p999}</td>\
         <td>{max}</td><td>{}</td>{exact}</tr>",
        outcome.scenario.name(),
        outcome.tasks,
        outcome.operations,
        outcome.per_second,
        outcome.failed,
    );
}

fn section(page: &mut String, outcome: &Outcome) {
    let _ = writeln!(
        page,
        "<h2>{}</h2>\n<p>One operation: {}. This process used {:.0} % of a processor.</p>",
        outcome.scenario.name(),
        outcome.operation,
        outcome.cpu * 100.0,
    );
    for trouble in [&outcome.wrong, &outcome.error].into_iter().flatten() {
        let _ = writeln!(page, "<p class=\"bad\">{}</p>", escape(trouble));
    }
    let (latency, rate) = (plot::distribution(&outcome.distribution), plot::timeline(&outcome.timeline));
    let _ = writeln!(page, "<div class=\"plots\">{latency}{rate}</div>");
}

/// Text of others, as text.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_text() {
        assert_eq!(escape("<b a=\"&\">"), "&lt;b a=&quot;&amp;&quot;&gt;");
    }
}
