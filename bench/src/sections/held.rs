//! Many locks held at once: memory, and the requests that keep them.

use std::time::Duration;

use crate::{
    findings::{Findings, Table},
    harness::{Contender, Counted, Ran, Stage, Task, figure},
};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let locks = stage.args.pick(2_000, 100_000);
    stage.progress.section("held locks", 1);
    let (ran, counted) = hold(stage, locks)?;
    let Costs { memory, renewals, in_time, cpu } = Costs::of(&ran, counted, locks);
    if in_time < 1.0 {
        findings.wrong(true, format!("held: {} of {locks} were still held", ran.first().done));
    }
    findings.target("held.memory", Ok(memory));
    findings.target("held.renewals", Ok(renewals));
    findings.target("held.in-time", Ok(in_time));
    let head = ["locks", "bytes each", "renewals per command", "held at the end", "client CPU %"];
    let mut table = Table::new("Held locks", "Renewed by one thread; the last column is of one core.", &head);
    table.row([figure(locks as f64), figure(memory), figure(renewals), figure(in_time), figure(cpu)]);
    findings.tables.push(table);
    Ok(())
}

/// Holds so many for longer than the time between two renewals.
pub(super) fn hold(stage: &mut Stage, held: usize) -> Result<(Ran, Counted), String> {
    let (lease, seconds) = stage.args.pick(("3s", 2.0), ("30s", 12.0));
    let url = format!("{}?ttl={lease}", stage.server.url());
    let ours = Contender::ours();
    let task = Task { url: Some(&url), ..Task::new(&ours, "held", held, seconds) };
    stage.count(Task { patience: Duration::from_secs(60), ..task })
}

/// What holding costs.
pub(super) struct Costs {
    pub(super) memory: f64,
    pub(super) renewals: f64,
    pub(super) in_time: f64,
    pub(super) cpu: f64,
}

impl Costs {
    pub(super) fn of(ran: &Ran, counted: Counted, held: usize) -> Self {
        let said = ran.first();
        let [before, after] = said.resident;
        Self {
            memory: after.saturating_sub(before) as f64 / held as f64,
            renewals: counted.keys as f64 / counted.commands.max(1) as f64,
            in_time: said.done as f64 / held as f64,
            cpu: said.cpu / said.seconds * 100.0,
        }
    }
}
