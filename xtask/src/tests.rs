//! All tests, with what was skipped counted aloud.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use crate::{
    steps::{self, Outcome},
    wheel,
};

/// How many tests of one program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// Runs every test of the workspace, documentation included.
pub(crate) fn run(allow_missing: bool, passed: &[String]) -> Outcome {
    steps::say("==> all tests");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--workspace", "--all-features", "--no-fail-fast"])
        .args(passed)
        .stdout(Stdio::piped());
    if std::env::var_os(THREADS).is_none() {
        command.env(THREADS, threads().to_string());
    }
    if allow_missing {
        command.env("LEASEHOLD_ALLOW_MISSING", "1");
    }
    wheel::name_to(&mut command);
    let mut child = command.spawn().map_err(|error| format!("cannot start cargo: {error}"))?;
    let skipped = match child.stdout.take() {
        Some(output) => {
            echo(BufReader::new(output)).map_err(|error| format!("cannot read the tests' output: {error}"))?
        }
        None => 0,
    };
    let status = child.wait().map_err(|error| format!("cannot wait for cargo: {error}"))?;
    if skipped > 0 {
        steps::say(&format!("{skipped} SKIPPED for want of a server (see the lines `skipped:` above)"));
    }
    if status.success() { Ok(()) } else { Err(format!("tests ended with {status}")) }
}

/// Writes the README's table of what stores say of themselves; see `crates/leasehold/tests/stores.rs`.
pub(crate) fn write_stores() -> Outcome {
    let mut command = Command::new(env!("CARGO"));
    // The same features as all tests: the same build.
    command.args(["test", "--workspace", "--all-features", "--test", "stores"]);
    wheel::name_to(&mut command);
    steps::run("the README's table of stores", command.env("LEASEHOLD_WRITE_TABLE", "1"))
}

/// Tests mostly wait, for servers and for leases to end: more of them at once than cores end sooner.
fn threads() -> usize {
    4 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Passes the output on, line by line, and counts what was skipped.
fn echo(output: impl BufRead) -> std::io::Result<usize> {
    let mut skipped = 0;
    let mut out = std::io::stdout().lock();
    for line in output.lines() {
        let line = line?;
        skipped += usize::from(line.trim_start().starts_with("skipped: "));
        writeln!(out, "{line}")?;
    }
    Ok(skipped)
}
