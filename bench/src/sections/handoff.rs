//! From one process to another: from the call that releases to the return of the call that acquires.

use std::time::Duration;

use super::Field;
use crate::{
    chart::Chart,
    findings::{Findings, Table},
    harness::{Contender, Running, Samples, Stage, Task, Waits},
};

/// Longer than any library sleeps between two looks.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let (count, rounds) = (stage.args.pick(6, 20), stage.args.pick(1, 3));
    let mut field = Field::new("hand-off", vec![Contender::ours()], stage);
    stage.progress.section("hand-off", rounds * (field.contenders.len() + 1));
    let (mut micros, mut pings) = (Samples::default(), Samples::default());
    let cold = Contender::bare("cold PING", "usual", "1");
    for _ in 0..rounds {
        let ran = stage.run(Task::new(&cold, "ping", 1, stage.args.pick(0.5, 2.0)))?;
        pings.push(&cold.name, 1, ran.first().micros_at(0.5));
        let run = |contender: &Contender| {
            stage.progress.step(&contender.name);
            stage.server.clear()?;
            pass(contender, &stage.server.url(), count)
        };
        field.each(findings, run, |contender, all| {
            for latency in all {
                micros.push(&contender.name, 1, latency);
            }
        });
    }
    let (ours, ping) = (micros.median("leasehold", 1), pings.median(&cold.name, 1));
    findings.ratio("handoff.ping", ours, ping, "it did not run");
    let polls = field.contenders.iter().filter(|contender| contender.waits == Waits::Polls);
    let fastest = polls.filter_map(|contender| micros.median(&contender.name, 1)).min_by(f64::total_cmp);
    findings.ratio("handoff.poller", fastest, ours, "no library that polls is here");
    findings.ratio("handoff.redisson", ours, micros.median("Redisson", 1), &stage.why_missing("Redisson"));
    let note = "µs from the call of release in one process to the return of acquire in the other, which has waited \
                for 20 to 60 ms by then; for scale, a PING after 30 ms of silence.";
    let mut table = Table::new("Hand-off between two processes", note, &["", "µs: p50 (least–greatest)"]);
    let mut bars = Vec::new();
    let names = field.contenders.iter().map(|contender| contender.name.as_str());
    for (name, figures) in names.map(|name| (name, &micros)).chain([("cold PING", &pings)]) {
        let Some(spread) = figures.spread(name, 1) else { continue };
        table.row([name.to_owned(), spread.text()]);
        bars.push((name.to_owned(), spread.median));
    }
    findings.tables.push(table);
    findings
        .charts
        .push(("handoff".to_owned(), Chart::bars("Hand-off between two processes, p50", "µs", bars)));
    Ok(())
}

/// Two processes take turns, each waiting while the other holds. Nobody holds afterwards.
#[expect(clippy::disallowed_methods, reason = "the harness has no executor; the holder works for a while")]
pub(super) fn pass(contender: &Contender, url: &str, turns: usize) -> Result<Vec<f64>, String> {
    let start = || {
        let mut running = Running::start(contender, url, "turns", 1, 0.0, None)?;
        running.tell("go").map(|()| running)
    };
    let (mut holder, mut waiter) = (start()?, start()?);
    holder.tell("acquire")?;
    holder.hear(PATIENCE)?;
    let mut latencies = Vec::new();
    for turn in 0..turns {
        waiter.tell("acquire")?;
        // Spread evenly, so that no rhythm of a library's falls in with ours.
        std::thread::sleep(Duration::from_millis(20 + (turn as u64 * 17) % 41));
        holder.tell("release")?;
        let released = moment(&holder)?;
        let acquired = moment(&waiter)?;
        latencies.push((acquired - released) / 1e3);
        std::mem::swap(&mut holder, &mut waiter);
    }
    holder.tell("release")?;
    moment(&holder)?;
    Ok(latencies)
}

fn moment(running: &Running) -> Result<f64, String> {
    let line = running.hear(PATIENCE)?;
    line.trim().parse::<u64>().map(|nanos| nanos as f64).map_err(|error| format!("{error} in {line:?}"))
}
