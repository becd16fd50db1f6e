//! Nobody is in the way: pairs per second, their latency, and what each costs.

use std::time::Duration;

use leasehold_workload::{QUANTILES, Said};

use super::Field;
use crate::{
    chart::{Chart, Series},
    findings::{Findings, Table},
    harness::{Contender, Ran, Samples, Stage, Task},
};

const BARE: &str = "bare commands";
const BARE_PLAIN: &str = "bare commands, plain";
const FULL: &str = "bare commands, saturated";
const FULL_PLAIN: &str = "bare commands, plain, saturated";
const OURS: &str = "leasehold";
const PLAIN: &str = "leasehold plain()";

/// Connections that keep a server busy all the time.
const MANY: &str = "4";

/// The size at which the client's cost is looked at.
const COST: usize = 64;

#[derive(Default)]
struct Figures {
    rate: Samples,
    p50: Samples,
    p99: Samples,
    cpu: Samples,
    server: Samples,
    batch: Samples,
    allocations: Samples,
    /// The last run at each size, for the distribution.
    last: Vec<(String, usize, Said)>,
}

impl Figures {
    fn keep(&mut self, contender: &Contender, tasks: usize, ran: &Ran) {
        let (name, said) = (contender.name.as_str(), ran.first());
        let pairs = said.done.max(1) as f64;
        self.rate.push(name, tasks, said.rate());
        self.p50.push(name, tasks, said.micros_at(0.5));
        self.p99.push(name, tasks, said.micros_at(0.99));
        self.cpu.push(name, tasks, said.cpu / pairs * 1e6);
        if let Some(allocations) = said.allocations {
            self.allocations.push(name, tasks, allocations);
        }
        // The server is looked at for longer than the pairs are counted. Who cannot tell how many there were in all
        // did 0.3 s more of them, at about the same rate.
        let whole =
            if said.total > 0 { said.total as f64 } else { pairs * (said.seconds + 0.3) / said.seconds };
        self.server.push(name, tasks, ran.seen.cpu / whole * 1e6);
        self.batch.push(name, tasks, 2.0 * whole / ran.seen.reads.max(1) as f64);
        self.last.retain(|(of, size, _)| (of.as_str(), *size) != (name, tasks));
        self.last.push((name.to_owned(), tasks, said));
    }
}

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let sizes = stage.args.pick(&[1, 64, 256][..], &[1, 16, 64, 256, 1000]);
    let (seconds, rounds) = (stage.args.pick(0.3, 1.5), stage.args.rounds());
    let own = vec![
        Contender::bare(BARE, "usual", "1"),
        Contender::ours(),
        Contender::bare(BARE_PLAIN, "plain", "1"),
        Contender::variant(PLAIN, "plain"),
    ];
    let full = [Contender::bare(FULL, "usual", MANY), Contender::bare(FULL_PLAIN, "plain", MANY)];
    let mut field = Field::new("pairs", own, stage);
    stage.progress.section("uncontended pairs", rounds * sizes.len() * (field.contenders.len() + 1));
    let mut figures = Figures::default();
    for round in 0..rounds {
        for &tasks in sizes {
            let run = |contender: &Contender| {
                // A quick run shows that others run, not how: one size will do.
                let wanted = tasks == COST || !stage.args.quick || !contender.is_peer();
                wanted.then(|| stage.run(task(contender, tasks, seconds))).transpose()
            };
            field.round(round, findings, run, |contender, ran| {
                if let Some(ran) = ran {
                    figures.keep(contender, tasks, &ran);
                }
            });
            if tasks == 256 {
                for contender in &full {
                    figures.keep(contender, tasks, &stage.run(task(contender, tasks, seconds))?);
                }
            }
        }
    }
    targets(stage, findings, &figures);
    tables(findings, &figures, &field, sizes);
    charts(findings, &figures, &field);
    Ok(())
}

fn task(contender: &Contender, tasks: usize, seconds: f64) -> Task<'_> {
    Task { patience: Duration::from_secs(20), ..Task::new(contender, "pairs", tasks, seconds) }
}

fn targets(stage: &Stage, findings: &mut Findings, figures: &Figures) {
    let rate = |name: &str, tasks| figures.rate.median(name, tasks);
    let none = "it did not run";
    findings.ratio("pairs64.redisson", rate(OURS, 64), rate(BARE, 64), none);
    findings.ratio("pairs64.plain", rate(PLAIN, 64), rate(BARE_PLAIN, 64), none);
    findings.ratio("pairs64.rslock", rate(PLAIN, 64), rate("rslock", 64), &stage.why_missing("rslock"));
    findings.ratio("pairs256.redisson", rate(OURS, 256), rate(FULL, 256), none);
    findings.ratio("pairs256.plain", rate(PLAIN, 256), rate(FULL_PLAIN, 256), none);
    findings.ratio("single.p50", figures.p50.median(OURS, 1), figures.p50.median(BARE, 1), none);
    let cost = |samples: &Samples| samples.median(OURS, COST).ok_or_else(|| none.to_owned());
    findings.target("cost.cpu", cost(&figures.cpu));
    findings.target("cost.allocations", cost(&figures.allocations));
    findings.target("cost.reads", cost(&figures.batch));
}

fn names(field: &Field) -> Vec<String> {
    let mut names: Vec<String> = field.contenders.iter().map(|contender| contender.name.clone()).collect();
    names.extend([FULL.to_owned(), FULL_PLAIN.to_owned()]);
    names
}

fn tables(findings: &mut Findings, figures: &Figures, field: &Field, sizes: &[usize]) {
    let text = |samples: &Samples, name: &str, tasks| {
        samples.spread(name, tasks).map_or_else(|| "—".to_owned(), |spread| spread.text())
    };
    let columns: Vec<String> = sizes.iter().map(|tasks| format!("{tasks} tasks")).collect();
    let head: Vec<&str> = std::iter::once("").chain(columns.iter().map(String::as_str)).collect();
    let mut rates =
        Table::new("Uncontended pairs per second", "A pair is an acquisition and its release.", &head);
    for name in names(field) {
        let cells = sizes.iter().map(|tasks| text(&figures.rate, &name, *tasks));
        rates.row(std::iter::once(name.clone()).chain(cells));
    }
    let note = "One task and 64 tasks: p50 and p99 in µs of a pair; at 64 tasks also the processor time per pair of \
                client and server in µs, allocations per pair, and commands per read of the server.";
    let head = [
        "",
        "1: p50",
        "1: p99",
        "64: p50",
        "64: p99",
        "client µs",
        "server µs",
        "allocations",
        "commands per read",
    ];
    let mut costs = Table::new("Latency and cost of a pair", note, &head);
    for name in field.contenders.iter().map(|contender| &contender.name) {
        let single = [&figures.p50, &figures.p99].map(|samples| text(samples, name, 1));
        let columns =
            [&figures.p50, &figures.p99, &figures.cpu, &figures.server, &figures.allocations, &figures.batch];
        let many = columns.map(|samples| text(samples, name, COST));
        costs.row(std::iter::once(name.clone()).chain(single).chain(many));
    }
    findings.tables.extend([rates, costs]);
}

fn charts(findings: &mut Findings, figures: &Figures, field: &Field) {
    let names = field.contenders.iter().map(|contender| contender.name.as_str());
    let series = names.map(|name| Series::new(name, figures.rate.points(name))).collect();
    let chart =
        Chart::lines("Throughput: uncontended pairs per second over tasks", "tasks", "pairs/s", series);
    findings.charts.push(("throughput".to_owned(), chart));
    let words = QUANTILES.iter().map(|share| format!("p{}", share * 100.0)).collect();
    let distribution = |(name, _, said): &(String, usize, Said)| {
        Series::new(name, said.micros.iter().enumerate().map(|(at, micros)| (at as f64, *micros)).collect())
    };
    let at_cost = figures.last.iter().filter(|(_, tasks, _)| *tasks == COST);
    // A batch of bare commands has one latency for all of it.
    let series = at_cost.filter(|(name, _, _)| !name.starts_with("bare")).map(distribution).collect();
    let chart = Chart::over("Latency of a pair, 64 tasks", "", "µs", series, words);
    findings.charts.push(("latency".to_owned(), chart));
}
