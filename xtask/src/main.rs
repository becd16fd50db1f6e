//! Chores of this repository, `cargo xtask WHAT`.
//!
//! `test` installs what the tests need and runs them all; `ci` runs everything a change must pass; `tidy` checks
//! what no compiler does; `bench` compares with the limit and with others; `reliability` runs stores under faults;
//! `stores` writes the README's table of what they can do; `planted` shows that the checks find known bugs. Each says
//! what it does before it does it.

mod bench;
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
                                               and short runs under faults and of the benchmarks
cargo xtask tidy                               sizes, headers and cancel-safety notes of the source
cargo xtask bench [--quick] [--only SECTION]   against the limit and other libraries, in one run; writes
                                               docs/benchmarks.md (--quick, --only: target/bench/benchmarks.md)
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
    // The one that runs stores under faults explains itself.
    if what != "reliability" && options.iter().any(|option| option == "--help" || option == "-h") {
        return usage("");
    }
    if what == "reliability" {
        return end(reliability::run(&rest));
    }
    if what == "bench" {
        return end(bench::run(&rest));
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

fn usage(problem: &str) -> ExitCode {
    if !problem.is_empty() {
        steps::say(problem);
    }
    steps::say(USAGE);
    if problem.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(64) }
}
