//! Leasehold against the limit and against other libraries, measured alternately in one run.
//!
//! `leasehold-bench [--quick] [--only SECTION] [--page FILE]` measures, prints every target beside what was measured,
//! and writes the page. It ends with an error if something could not be run or came out wrong, never because it was
//! slow: `cargo xtask ci` runs it, and nothing there may depend on how fast a shared machine is.
//!
//! Whatever is measured is a program of its own, started by the harness: another library, or this very program as
//! `leasehold-bench worker …` (ours), `bare …` (the same commands without a library), `direct …` (on other stores, what a
//! lock needs, by the client library alone), `advisory …` (PostgreSQL's own locks), `local …` (a semaphore of this process).
//! All speak the protocol of `bench/workload`.
//!
//! Reading order: `harness/` runs programs and keeps what they say; `sections/` is what is measured, a file each;
//! `targets` is what we want, `reasons` why it is not so; `page`, `chart` and `svg` are what is written.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics: no figure is that large, and none is negative"
)]

mod allocations;
mod alternate;
mod args;
mod chart;
mod findings;
mod harness;
mod page;
mod reasons;
mod sections;
mod svg;
mod targets;
mod worker;

use std::process::ExitCode;

use args::Args;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(done) = worker::run(&words) {
        return end(done);
    }
    match Args::read(&words) {
        Ok(args) => end(sections::run(&args)),
        Err(problem) => {
            say(&problem);
            ExitCode::from(64)
        }
    }
}

fn end(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem);
            ExitCode::FAILURE
        }
    }
}

/// Talks to whoever runs this.
#[expect(clippy::print_stderr, reason = "this is the one place where the benchmark talks")]
fn say(line: &str) {
    eprintln!("{line}");
}
