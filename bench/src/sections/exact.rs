//! The counter on every store: exact, or the run fails.

use leasehold_testkit::servers::{
    StartError,
    etcd::Etcd,
    redis::{Brand, Independent, Redis, Setup},
    zookeeper::ZooKeeper,
};

use super::exact;
use crate::{
    findings::{Findings, Table},
    harness::{Contender, Stage, Task, figure},
};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    let tasks = stage.args.pick(100, 1000);
    stage.progress.section("counter on every store", 8);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let (independent, valkey) =
        (Independent::start(5), Redis::start_as(&Setup::new().with_brand(Brand::Valkey)));
    let (etcd, zookeeper) = (Etcd::start(), ZooKeeper::start());
    let stores = [
        ("memory", Ok("memory:".to_owned()), 1),
        ("SQLite", Ok(file.clone()), 1),
        ("SQLite, 4 processes", Ok(file), 4),
        ("Redis", Ok(stage.server.url()), 4),
        ("Redlock of 5", where_is(&independent, Independent::url), 4),
        ("Valkey", where_is(&valkey, Redis::url), 4),
        ("etcd", where_is(&etcd, Etcd::url), 4),
        ("ZooKeeper", where_is(&zookeeper, ZooKeeper::url), 4),
    ];
    let head = ["store", "processes", "count", "seconds"];
    let title = format!("Exactness: {tasks} tasks add one each");
    let mut table = Table::new(&title, "Any other count than the number of tasks fails the run.", &head);
    let ours = Contender::ours();
    for (name, url, processes) in stores {
        if let Err(why @ StartError::NotInstalled { .. }) = &url {
            table.row([name.to_owned(), String::new(), format!("not here: {why}"), String::new()]);
            continue;
        }
        let ran = url.map_err(ToString::to_string).and_then(|url| {
            let task = Task { processes, url: Some(&url), ..Task::new(&ours, "counter", tasks, 0.0) };
            exact(stage.run(task)?, tasks)
        });
        match ran {
            Ok(ran) => {
                let cells =
                    [name.to_owned(), processes.to_string(), ran.counted.to_string(), figure(ran.seconds())];
                table.row(cells);
            }
            Err(problem) => findings.wrong(true, format!("counter on {name}: {problem}")),
        }
    }
    findings.tables.push(table);
    Ok(())
}

/// The address of a server, or why there is none.
fn where_is<S>(started: &Result<S, StartError>, url: impl Fn(&S) -> String) -> Result<String, &StartError> {
    started.as_ref().map(url)
}
