//! All want the same lock: 1000 tasks of one process, each adds one to a number.

use super::{Field, exact};
use crate::{
    chart::Chart,
    findings::{Findings, Table},
    harness::{Contender, Samples, Stage, Task},
};

const COHORT: &str = "leasehold cohort(64)";

#[expect(clippy::unnecessary_wraps, reason = "sections have one shape, and some can fail")]
pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let (tasks, rounds) = (stage.args.pick(200, 1000), stage.args.rounds());
    let own = vec![
        Contender::ours(),
        Contender::variant("leasehold plain()", "plain"),
        Contender::variant(COHORT, "cohort"),
    ];
    let mut field = Field::new("counter", own, stage);
    stage.progress.section("counter", (rounds + 1) * field.contenders.len());
    let (mut seconds, mut p50, mut p99, mut cpu) =
        (Samples::default(), Samples::default(), Samples::default(), Samples::default());
    for round in 0..rounds {
        let run =
            |contender: &Contender| exact(stage.run(Task::new(contender, "counter", tasks, 0.0))?, tasks);
        field.round(round, findings, run, |contender, ran| {
            let said = ran.first();
            seconds.push(&contender.name, tasks, ran.seconds());
            p50.push(&contender.name, tasks, said.micros_at(0.5) / 1e3);
            p99.push(&contender.name, tasks, said.micros_at(0.99) / 1e3);
            cpu.push(&contender.name, tasks, said.cpu);
        });
    }
    let mut commands = Samples::default();
    let count = |contender: &Contender| {
        let (ran, counted) = stage.count(Task::new(contender, "counter", tasks, 0.0))?;
        exact(ran, tasks).map(|_| counted)
    };
    field.each(findings, count, |contender, counted| {
        commands.push(&contender.name, tasks, counted.commands as f64 / tasks as f64);
    });
    let ours = seconds.median("leasehold", tasks);
    for (id, name) in [
        ("counter.rslock", "rslock"),
        ("counter.distributed-lock", "distributed-lock"),
        ("counter.redis-py", "redis-py"),
    ] {
        findings.ratio(id, seconds.median(name, tasks), ours, &stage.why_missing(name));
    }
    let cohort = seconds.median(COHORT, tasks);
    findings.ratio("cohort.rslock", seconds.median("rslock", tasks), cohort, &stage.why_missing("rslock"));
    let per = |name: &str| commands.median(name, tasks).ok_or_else(|| "it did not run".to_owned());
    findings.target("counter.commands", per("leasehold"));
    findings.target("cohort.commands", per(COHORT));
    let note = "Each task acquires the lock once, reads a number, lets others run, writes one more, releases. \
                Seconds for all; wait of a task in ms; processor time of the client in seconds. Exact, all of them, \
                or not in this table.";
    let head = ["", "seconds", "commands per acquisition", "wait p50", "wait p99", "client CPU"];
    let mut table = Table::new(&format!("Counter: {tasks} tasks, one lock, one process"), note, &head);
    for name in field.contenders.iter().map(|contender| &contender.name) {
        let text =
            |samples: &Samples| samples.spread(name, tasks).map(|spread| spread.text()).unwrap_or_default();
        table.row([name.clone(), text(&seconds), text(&commands), text(&p50), text(&p99), text(&cpu)]);
    }
    findings.tables.push(table);
    charts(findings, &field, tasks, &commands, &seconds);
    Ok(())
}

fn charts(findings: &mut Findings, field: &Field, tasks: usize, commands: &Samples, seconds: &Samples) {
    let bars = |samples: &Samples| {
        let names = field.contenders.iter().map(|contender| contender.name.clone());
        names.filter_map(|name| Some((name.clone(), samples.median(&name, tasks)?))).collect::<Vec<_>>()
    };
    let chart = Chart::bars("Commands per acquisition, counter", "commands", bars(commands));
    findings.charts.push(("commands".to_owned(), chart));
    let chart = Chart::bars("Counter: seconds for all tasks", "seconds", bars(seconds));
    findings.charts.push(("counter".to_owned(), chart));
}
