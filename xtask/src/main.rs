//! Chores of this repository, `cargo xtask WHAT`.
//!
//! `test` installs what the tests need and runs them all; `ci` runs everything a change must pass; `tidy` checks
//! what no compiler does; `bench` prints the ratios; `reliability` runs stores under faults; `stores` writes the
//! README's table of what they can do; `planted` shows that the checks find known bugs. Each says what it does before it does it.

mod ci;
mod install;
mod planted;
mod reliability;
mod steps;
mod tests;
mod tidy;
mod wheel;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [--allow-missing] [-- ARGS]   install what the tests need (Debian, Ubuntu), then run all tests
cargo xtask ci [--allow-missing]               everything a change must pass: fmt, clippy, docs, features, tidy, tests,
                                               and a short run under faults
cargo xtask tidy                               sizes, headers and cancel-safety notes of the source
cargo xtask bench                              ratios against the limit, in one run
cargo xtask reliability [--store S] [--seconds N | --operations N] [--seed K] [--short]
                                               stores under faults; writes docs/reliability.md
cargo xtask stores                             the README's table of what each store can do, as they say themselves
cargo xtask planted [BUG]                      known bugs must be found; writes docs/reliability-planted.md

--allow-missing   a test whose server cannot be had is counted as skipped instead of failing
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let what = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    let (options, passed) = match rest.iter().position(|word| word == "--") {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (&rest[..], &rest[..0]),
    };
    if what == "reliability" {
        return end(reliability::run(&rest));
    }
    if what == "planted" {
        return end(planted::run(&rest));
    }
    let allow_missing = options.iter().any(|option| option == "--allow-missing");
    if let Some(unknown) = options.iter().find(|option| *option != "--allow-missing") {
        return usage(&format!("unknown option {unknown:?}"));
    }
    let done = match what.as_str() {
        "test" => install::all(allow_missing).and_then(|()| tests::run(allow_missing, passed)),
        "ci" => ci::run(allow_missing),
        "tidy" => tidy::run(),
        "bench" => bench(),
        "stores" => install::all(false).and_then(|()| tests::write_stores()),
        "" | "help" | "--help" | "-h" => return usage(""),
        other => return usage(&format!("unknown chore {other:?}")),
    };
    end(done)
}

fn end(done: steps::Outcome) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            steps::say(&format!("failed: {problem}"));
            ExitCode::FAILURE
        }
    }
}

/// The command is built first: one of the ratios is its own.
fn bench() -> steps::Outcome {
    steps::cargo("the command", &["build", "--release", "--package", "leasehold-cli"])?;
    steps::cargo("the ratios", &["run", "--release", "--package", "leasehold-benches"])
}

fn usage(problem: &str) -> ExitCode {
    if !problem.is_empty() {
        steps::say(problem);
    }
    steps::say(USAGE);
    if problem.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(64) }
}
