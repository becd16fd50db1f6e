//! The memory store against `tokio::sync::Mutex`: what the engine costs when the store costs nothing.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use leasehold::{Client, backend::Memory};
use tokio::{
    runtime::Runtime,
    task::{JoinSet, yield_now},
};

use crate::{
    alternate::{Comparison, alternate},
    findings::{Findings, Table},
    harness::Stage,
};

/// Tasks that want one lock.
const TASKS: u64 = 1000;

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    stage.progress.section("memory store", 2);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    stage.progress.step("uncontended");
    let pair = uncontended(&runtime, stage.args.pick(3, 21), stage.args.pick(2_000, 20_000))?;
    findings.target("memory.pair", Ok(pair.slowdown()));
    stage.progress.step("counter");
    let counter = counter(&runtime, findings, stage.args.pick(3, 21), stage.args.pick(1, 10))?;
    findings.target("memory.counter", Ok(counter.slowdown()));
    let head = ["", "ours", "`tokio::sync::Mutex`", "×"];
    let mut table = Table::new("Memory store", "", &head);
    table.row(pair.cells("uncontended pair, ns", 1.0));
    table.row(counter.cells(&format!("counter, {TASKS} tasks, µs"), 1e3));
    findings.tables.push(table);
    Ok(())
}

fn uncontended(runtime: &Runtime, rounds: u32, times: u32) -> Result<Comparison, String> {
    let locks = runtime.block_on(async { Client::new(Memory::new()) });
    let lock = locks.lock("one");
    let mutex = tokio::sync::Mutex::new(0_u64);
    let mut failed = Ok(());
    let mut ours = |times| {
        let done: leasehold::Result<()> = runtime.block_on(async {
            for _ in 0..times {
                lock.acquire().await?.release().await?;
            }
            Ok(())
        });
        if let Err(error) = done {
            failed = Err(error.to_string());
        }
    };
    let mut theirs = |times| {
        runtime.block_on(async {
            for _ in 0..times {
                *mutex.lock().await += 1;
            }
        });
    };
    let comparison = alternate(rounds, times, &mut ours, &mut theirs)?;
    failed.map(|()| comparison)
}

fn counter(
    runtime: &Runtime,
    findings: &mut Findings,
    rounds: u32,
    times: u32,
) -> Result<Comparison, String> {
    let locks = runtime.block_on(async { Client::new(Memory::new()) });
    let (lock, mutex) = (locks.lock("counter"), Arc::new(tokio::sync::Mutex::new(())));
    let [number, reference] = [0; 2].map(|_| Arc::new(AtomicU64::new(0)));
    let mut asked = 0;
    let mut ours = |times| {
        asked += u64::from(times) * TASKS;
        let task = || {
            let (lock, number) = (lock.clone(), number.clone());
            async move {
                let Ok(guard) = lock.acquire().await else { return };
                add_one(&number).await;
                // A release that failed shows as a number that is too small: the next one never comes.
                drop(guard.release().await);
            }
        };
        all(runtime, times, task);
    };
    let mut theirs = |times| {
        let task = || {
            let (mutex, number) = (mutex.clone(), reference.clone());
            async move {
                let _held = mutex.lock().await;
                add_one(&number).await;
            }
        };
        all(runtime, times, task);
    };
    let comparison = alternate(rounds, times, &mut ours, &mut theirs);
    let counted = number.load(Relaxed);
    if counted != asked {
        findings.wrong(true, format!("memory: NOT EXACT: {counted} after {asked} increments under the lock"));
    }
    comparison
}

/// All tasks, so many times.
fn all<F: Future<Output = ()> + Send + 'static>(runtime: &Runtime, times: u32, task: impl Fn() -> F) {
    for _ in 0..times {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..TASKS {
                tasks.spawn(task());
            }
            tasks.join_all().await;
        });
    }
}

/// Not one act: two that hold the lock at once lose one.
async fn add_one(number: &AtomicU64) {
    let before = number.load(Relaxed);
    yield_now().await;
    number.store(before + 1, Relaxed);
}
