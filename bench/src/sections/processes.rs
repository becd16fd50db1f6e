//! All want the same lock, from four processes at once.

use super::{Field, exact};
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Samples, Stage, Task},
};

const PROCESSES: usize = 4;

#[expect(clippy::unnecessary_wraps, reason = "sections have one shape, and some can fail")]
pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let (tasks, rounds) = (stage.args.pick(200, 1000), stage.args.pick(1, 3));
    let own = vec![Contender::ours(), Contender::variant("leasehold cohort(64)", "cohort")];
    let mut field = Field::new("counter in 4 processes", own, stage);
    if stage.args.quick {
        // Four virtual machines take longer to start than all the rest of a quick run.
        field.contenders.retain(|contender| contender.is_ours);
    }
    stage.progress.section("counter in 4 processes", (rounds + 1) * field.contenders.len());
    let (mut seconds, mut commands, mut is_exact) = (Samples::default(), Samples::default(), true);
    for round in 0..rounds {
        let run = |contender: &Contender| exact(stage.run(task(contender, tasks))?, tasks);
        field.round(round, findings, run, |contender, ran| {
            seconds.push(&contender.name, tasks, ran.seconds());
        });
    }
    let count = |contender: &Contender| {
        let (ran, counted) = stage.count(task(contender, tasks))?;
        exact(ran, tasks).map(|_| counted)
    };
    field.each(findings, count, |contender, counted| {
        commands.push(&contender.name, tasks, counted.commands as f64 / tasks as f64);
    });
    is_exact &= field.contenders.iter().any(|contender| contender.name == "leasehold");
    findings.target("counter4.exact", Ok(f64::from(u8::from(is_exact))));
    let per = commands.median("leasehold", tasks).ok_or_else(|| "it did not run".to_owned());
    findings.target("counter4.commands", per);
    let redisson = seconds.median("Redisson", tasks);
    findings.ratio(
        "counter4.redisson",
        redisson,
        seconds.median("leasehold", tasks),
        &stage.why_missing("Redisson"),
    );
    let title = format!("Counter: {tasks} tasks, one lock, {PROCESSES} processes");
    let note =
        "Seconds of the slowest process, from when all were connected. Exact, all of them, or not here.";
    let mut table = Table::new(&title, note, &["", "seconds", "commands per acquisition"]);
    for name in field.contenders.iter().map(|contender| &contender.name) {
        let text =
            |samples: &Samples| samples.spread(name, tasks).map(|spread| spread.text()).unwrap_or_default();
        table.row([name.clone(), text(&seconds), text(&commands)]);
    }
    findings.tables.push(table);
    Ok(())
}

fn task(contender: &Contender, tasks: usize) -> Task<'_> {
    Task { processes: PROCESSES, ..Task::new(contender, "counter", tasks, 0.0) }
}
