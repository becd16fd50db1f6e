//! Ratios of Leasehold against the limit, each measured in turn within one run.
//!
//! `cargo run --release -p leasehold-benches` prints every figure beside its target and exits with 1 if one is
//! missed. These are benchmarks, not tests: nothing in CI depends on how fast a shared machine is.

mod alternate;
mod command;
mod memory;
mod report;
mod sqlite;

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let mut report = report::Report::default();
    memory::run(&mut report, &runtime);
    sqlite::run(&mut report, &runtime);
    command::run(&mut report);
    if report.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
