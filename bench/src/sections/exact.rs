//! The counter on every store: exact, or the run fails.

use leasehold_testkit::servers::redis::{Brand, Independent, Redis, Setup};

use super::exact;
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Stage, Task, figure},
};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let tasks = stage.args.pick(100, 1000);
    stage.progress.section("counter on every store", 6);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let independent = Independent::start(5).map_err(|error| error.to_string())?;
    let valkey = Redis::start_as(&Setup::new().with_brand(Brand::Valkey));
    let mut stores = vec![
        ("memory", "memory:".to_owned(), 1),
        ("SQLite", file.clone(), 1),
        ("SQLite, 4 processes", file, 4),
        ("Redis", stage.server.url(), 4),
        ("Redlock of 5", independent.url(), 4),
    ];
    if let Ok(valkey) = &valkey {
        stores.push(("Valkey", valkey.url(), 4));
    }
    let head = ["store", "processes", "count", "seconds"];
    let title = format!("Exactness: {tasks} tasks add one each");
    let mut table = Table::new(&title, "Any other count than the number of tasks fails the run.", &head);
    let ours = Contender::ours();
    for (name, url, processes) in stores {
        let task = Task { processes, url: Some(&url), ..Task::new(&ours, "counter", tasks, 0.0) };
        match stage.run(task).and_then(|ran| exact(ran, tasks)) {
            Ok(ran) => {
                let cells =
                    [name.to_owned(), processes.to_string(), ran.counted.to_string(), figure(ran.seconds())];
                table.row(cells);
            }
            Err(problem) => findings.wrong(true, format!("counter on {name}: {problem}")),
        }
    }
    if let Err(error) = valkey {
        table.row(["Valkey".to_owned(), String::new(), format!("not here: {error}"), String::new()]);
    }
    findings.tables.push(table);
    Ok(())
}
