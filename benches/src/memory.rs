//! The memory store against `tokio::sync::Mutex`: what the engine costs when the store costs nothing.

use leasehold::{Client, Guard, backend::Memory};
use tokio::runtime::Runtime;

use crate::{alternate::alternate, report::Report};

pub(crate) fn run(report: &mut Report, runtime: &Runtime) {
    uncontended(report, runtime);
    held(report, runtime);
}

fn uncontended(report: &mut Report, runtime: &Runtime) {
    let locks = runtime.block_on(async { Client::new(Memory::new()) });
    let lock = locks.lock("one");
    let mutex = tokio::sync::Mutex::new(0_u64);
    let mut ours = |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let guard = lock.acquire().await.expect("nobody else asks for it");
                guard.release().await.expect("it is held");
            }
        });
    };
    let mut theirs = |times| {
        runtime.block_on(async {
            for _ in 0..times {
                *mutex.lock().await += 1;
            }
        });
    };
    let comparison = alternate(21, 20_000, &mut ours, &mut theirs);
    report.slowdown("memory: acquire+release", "tokio::sync::Mutex", &comparison, 20.0);
}

/// What a held lock costs in memory, the store's own share included.
fn held(report: &mut Report, runtime: &Runtime) {
    const HELD: u32 = 100_000;
    let bytes = runtime.block_on(async {
        let locks = Client::new(Memory::new());
        let before = resident();
        let mut guards: Vec<Guard> = Vec::with_capacity(HELD as usize);
        for number in 0..HELD {
            guards.push(
                locks.lock(&format!("name:{number}")).acquire().await.expect("nobody else asks for it"),
            );
        }
        let bytes = resident().saturating_sub(before) / u64::from(HELD);
        drop(guards);
        locks.idle().await;
        bytes
    });
    report.at_most("memory: bytes per held lock, of 100 000", bytes, 1000);
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
