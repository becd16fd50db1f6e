//! The counter on every store: exact, or the run fails. Other libraries of a store count too, and are shown.

use super::{
    exact,
    servers::{self, Store},
};
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Stage, Task, figure},
};

/// All that have to be started.
const STORES: &[Store] = &[
    servers::REDLOCK,
    servers::VALKEY,
    servers::ETCD,
    servers::ZOOKEEPER,
    servers::POSTGRES,
    servers::MARIADB,
    servers::MONGODB,
    servers::MONGODB_SET,
    servers::MEMCACHED,
];

/// Of everything but what lives in one process.
const PROCESSES: usize = 4;

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let tasks = stage.args.pick(100, 1000);
    stage.progress.section("counter on every store", 4 + STORES.len());
    let title = format!("Exactness: {tasks} tasks add one each");
    let note = "Any other count of ours than the number of tasks fails the run.";
    let mut table = Table::new(&title, note, &["store", "", "processes", "count", "seconds"]);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let (ours, redis) = (Contender::ours(), stage.server.url());
    for (name, url, processes) in [
        ("memory", "memory:", 1),
        ("SQLite", file.as_str(), 1),
        ("SQLite", &file, PROCESSES),
        ("Redis", &redis, PROCESSES),
    ] {
        let task = Task { processes, url: Some(url), ..Task::new(&ours, "counter", tasks, 0.0) };
        count(stage, findings, &mut table, name, task);
    }
    for store in STORES {
        match store.start() {
            Ok(Ok(server)) => {
                // A quick run needs no other library: a JVM takes longer to start than all of this.
                let peers = if stage.args.quick { Vec::new() } else { store.peers(stage) };
                for contender in std::iter::once(&ours).chain(&peers) {
                    let task = Task::new(contender, "counter", tasks, 0.0);
                    let task = Task { processes: PROCESSES, url: Some(&server.url), ..task };
                    count(stage, findings, &mut table, store.name, task);
                }
            }
            Ok(Err(missing)) => table.row([store.name, "", "", &missing, ""].map(str::to_owned)),
            Err(problem) => findings.wrong(true, problem),
        }
    }
    findings.tables.push(table);
    Ok(())
}

fn count(stage: &mut Stage, findings: &mut Findings, table: &mut Table, store: &str, task: Task<'_>) {
    let who = &task.contender.name;
    match stage.run(task).and_then(|ran| exact(ran, task.tasks)) {
        Ok(ran) => table.row([
            store.to_owned(),
            who.clone(),
            task.processes.to_string(),
            ran.counted.to_string(),
            figure(ran.seconds()),
        ]),
        Err(problem) => {
            findings.wrong(task.contender.is_ours, format!("counter on {store}, {who}: {problem}"));
        }
    }
}
