//! Many wait for a lock that one holds: what that costs the server while nothing happens.

use super::Field;
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Samples, Stage, Task},
};

#[expect(clippy::unnecessary_wraps, reason = "sections have one shape, and some can fail")]
pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let (waiters, seconds, rounds) =
        (stage.args.pick(50, 200), stage.args.pick(1.0, 5.0), stage.args.pick(1, 3));
    let mut field = Field::new("waiters", vec![Contender::ours()], stage);
    // What others cost is seen at once, and each takes its seconds.
    field.peer_rounds = 1;
    stage.progress.section("waiters", (rounds + 1) * (field.contenders.len() + 1));
    let (mut server, mut client, mut commands) = (Samples::default(), Samples::default(), Samples::default());
    for round in 0..rounds {
        server.push("idle", waiters, idle(stage, seconds));
        let run = |contender: &Contender| stage.run(Task::new(contender, "waiters", waiters, seconds));
        field.round(round, findings, run, |contender, ran| {
            server.push(&contender.name, waiters, ran.seen.cpu / ran.seconds() * 100.0);
            client.push(&contender.name, waiters, ran.first().cpu / ran.seconds() * 100.0);
        });
    }
    let count = |contender: &Contender| {
        let (ran, counted) = stage.count(Task::new(contender, "waiters", waiters, seconds))?;
        match ran.first().done {
            0 => Ok(counted.commands),
            early => Err(format!("NOT EXACT: {early} of {waiters} got a lock that was held")),
        }
    };
    field.each(findings, count, |contender, sent| commands.push(&contender.name, waiters, sent as f64));
    let nothing = || "it did not run".to_owned();
    // The lease is 30 s, so within these seconds there is nothing to renew.
    findings.target("waiters.commands", commands.median("leasehold", waiters).ok_or_else(nothing));
    let above = server.median("leasehold", waiters).zip(server.median("idle", waiters));
    findings.target("waiters.cpu", above.map(|(ours, idle)| (ours - idle).max(0.0)).ok_or_else(nothing));
    let note = format!("In {seconds} s. Processor time in percent of one core; an idle server for scale.");
    let head = ["", "commands", "server CPU %", "client CPU %"];
    let mut table = Table::new(&format!("{waiters} waiters on a held lock"), &note, &head);
    for name in field.contenders.iter().map(|contender| contender.name.as_str()).chain(["idle"]) {
        let text =
            |samples: &Samples| samples.spread(name, waiters).map(|spread| spread.text()).unwrap_or_default();
        table.row([name.to_owned(), text(&commands), text(&server), text(&client)]);
    }
    findings.tables.push(table);
    Ok(())
}

/// What the server needs when nobody is there, in percent of a core.
#[expect(
    clippy::disallowed_methods,
    reason = "the harness has no executor, and idleness is what is measured"
)]
fn idle(stage: &Stage, seconds: f64) -> f64 {
    let before = stage.server.seen();
    std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
    stage.server.seen().since(before).cpu / seconds * 100.0
}
