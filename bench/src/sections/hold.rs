//! Tasks that hold the lock for a millisecond each: how much time passes in which nobody does.

use super::{Field, exact};
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Samples, Stage, Task},
};

#[expect(clippy::unnecessary_wraps, reason = "sections have one shape, and some can fail")]
pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let (tasks, rounds) = (stage.args.pick(50, 200), stage.args.rounds());
    let mut field = Field::new("hold 1 ms", vec![Contender::local(), Contender::ours()], stage);
    stage.progress.section("holding 1 ms each", rounds * field.contenders.len());
    let mut seconds = Samples::default();
    for round in 0..rounds {
        let run = |contender: &Contender| exact(stage.run(Task::new(contender, "hold", tasks, 0.0))?, tasks);
        field.round(round, findings, run, |contender, ran| {
            seconds.push(&contender.name, tasks, ran.seconds());
        });
    }
    let local = seconds.median("local semaphore", tasks);
    findings.ratio("hold.local", seconds.median("leasehold", tasks), local, "it did not run");
    let title = format!("{tasks} tasks holding 1 ms each");
    let mut table =
        Table::new(&title, "Seconds for all, and how many times a local semaphore's.", &["", "seconds", "×"]);
    for name in field.contenders.iter().map(|contender| &contender.name) {
        let Some(spread) = seconds.spread(name, tasks) else { continue };
        let times = local.map(|local| format!("{:.2}", spread.median / local)).unwrap_or_default();
        table.row([name.clone(), spread.text(), times]);
    }
    findings.tables.push(table);
    Ok(())
}
