//! How cost grows: with those who wait, with locks that are held, with processes.

use super::{
    exact,
    held::{self, Costs},
};
use crate::{
    chart::{Chart, Series},
    findings::{Findings, Table},
    harness::{Contender, Samples, Stage, Task, figure},
};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let waiters = stage.args.pick(&[1, 100][..], &[1, 10, 100, 1_000, 10_000]);
    let held = stage.args.pick(&[1, 100][..], &[1, 10, 100, 1_000, 10_000, 100_000]);
    let processes = stage.args.pick(&[1, 4][..], &[1, 2, 4, 8, 16, 32, 64]);
    stage.progress.section("scale", 5 * waiters.len() + held.len() + 2 * processes.len());
    self::waiters(stage, findings, waiters)?;
    self::held(stage, findings, held)?;
    self::processes(stage, findings, processes)
}

/// So many tasks of one process want one lock.
fn waiters(stage: &mut Stage, findings: &mut Findings, sizes: &[usize]) -> Result<(), String> {
    let contenders = [Contender::ours(), Contender::variant("leasehold cohort(64)", "cohort")];
    let (mut micros, mut commands, mut memory) = (Samples::default(), Samples::default(), Samples::default());
    for &size in sizes {
        for contender in &contenders {
            let task = Task::new(contender, "counter", size, 0.0);
            let ran = exact(stage.run(task)?, size)?;
            micros.push(&contender.name, size, ran.seconds() / size as f64 * 1e6);
            let (_, counted) = stage.count(task)?;
            commands.push(&contender.name, size, counted.commands as f64 / size as f64);
        }
        let ran = stage.run(Task::new(&contenders[0], "waiters", size, 0.1))?;
        let [before, after] = ran.first().resident;
        memory.push("leasehold", size, after.saturating_sub(before) as f64 / size as f64);
    }
    let note = "Tasks of one process that want one lock at once: µs and commands per acquisition, and bytes of \
                client memory for each that waits (of few, mostly the second client's own).";
    let mut table = Table::new(
        "Scale: waiters on one name",
        note,
        &["tasks", "µs", "commands", "cohort µs", "cohort commands", "bytes each"],
    );
    for &size in sizes {
        let text = |samples: &Samples, name: &str| samples.median(name, size).map(figure).unwrap_or_default();
        let [ours, cohort] = [&contenders[0].name, &contenders[1].name];
        table.row([
            size.to_string(),
            text(&micros, ours),
            text(&commands, ours),
            text(&micros, cohort),
            text(&commands, cohort),
            text(&memory, ours),
        ]);
    }
    findings.tables.push(table);
    let both = |samples: &Samples| {
        contenders
            .iter()
            .map(|contender| Series::new(&contender.name, samples.points(&contender.name)))
            .collect()
    };
    let chart = Chart::lines("Waiters on one name: time per acquisition", "tasks", "µs", both(&micros));
    findings.charts.push(("waiters".to_owned(), chart));
    let chart =
        Chart::lines("Waiters on one name: commands per acquisition", "tasks", "commands", both(&commands));
    findings.charts.push(("waiters-commands".to_owned(), chart));
    Ok(())
}

/// One process holds so many.
fn held(stage: &mut Stage, findings: &mut Findings, sizes: &[usize]) -> Result<(), String> {
    let (mut memory, mut cpu) = (Vec::new(), Vec::new());
    let head = ["locks", "bytes each", "client CPU %", "renewals per command"];
    let mut table = Table::new(
        "Scale: held locks",
        "One process, one thread, a lease of 30 s (3 s in a quick run).",
        &head,
    );
    for &size in sizes {
        let (ran, counted) = held::hold(stage, size)?;
        let costs = Costs::of(&ran, counted, size);
        if costs.in_time < 1.0 {
            findings.wrong(true, format!("scale: {} of {size} were still held", ran.first().done));
        }
        memory.push((size as f64, costs.memory));
        cpu.push((size as f64, costs.cpu));
        table.row([size.to_string(), figure(costs.memory), figure(costs.cpu), figure(costs.renewals)]);
    }
    findings.tables.push(table);
    let series = vec![Series::new("bytes each", memory), Series::new("client CPU, % of a core", cpu)];
    let chart = Chart::lines("Cost of held locks", "locks", "bytes, %", series);
    findings.charts.push(("held".to_owned(), chart));
    Ok(())
}

/// So many processes share the tasks.
fn processes(stage: &mut Stage, findings: &mut Findings, sizes: &[usize]) -> Result<(), String> {
    let tasks = stage.args.pick(128, 1024);
    let (ours, mut micros, mut commands) = (Contender::ours(), Samples::default(), Samples::default());
    let title = format!("Scale: {tasks} tasks in so many processes");
    let mut table =
        Table::new(&title, "Per acquisition of one lock that all want.", &["processes", "µs", "commands"]);
    for &processes in sizes {
        let task = Task { processes, ..Task::new(&ours, "counter", tasks, 0.0) };
        let ran = exact(stage.run(task)?, tasks)?;
        let (_, counted) = stage.count(task)?;
        let (time, sent) = (ran.seconds() / tasks as f64 * 1e6, counted.commands as f64 / tasks as f64);
        micros.push("µs per acquisition", processes, time);
        commands.push("commands per acquisition", processes, sent);
        table.row([processes.to_string(), figure(time), figure(sent)]);
    }
    findings.tables.push(table);
    let series = vec![
        Series::new("µs per acquisition", micros.points("µs per acquisition")),
        Series::new("commands per acquisition", commands.points("commands per acquisition")),
    ];
    let chart = Chart::lines("One lock, more and more processes", "processes", "µs, commands", series);
    findings.charts.push(("processes".to_owned(), chart));
    Ok(())
}
