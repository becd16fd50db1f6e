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
    let mut seen = Seen::default();
    if let Some(output) = child.stdout.take() {
        let echoed = echo(BufReader::new(output), &mut seen);
        echoed.map_err(|error| format!("cannot read the tests' output: {error}"))?;
    }
    let status = child.wait().map_err(|error| format!("cannot wait for cargo: {error}"))?;
    if seen.skipped > 0 {
        steps::say(&format!(
            "{} SKIPPED for want of a server (see the lines `skipped:` above)",
            seen.skipped
        ));
    }
    if status.success() {
        return Ok(());
    }
    steps::say("==> what failed, once more");
    seen.failed.iter().for_each(|line| steps::say(line));
    Err(format!("tests ended with {status}"))
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

/// How much of one failed test is said once more at the end.
const LINES_PER_FAILURE: usize = 20;

/// What is worth saying at the end of thousands of lines.
#[derive(Default)]
struct Seen {
    /// Tests that had no server.
    skipped: usize,
    /// What failed tests printed, each cut to its beginning.
    failed: Vec<String>,
    /// How many more lines of the present failure are kept.
    left: usize,
}

impl Seen {
    fn look_at(&mut self, line: &str) {
        self.skipped += usize::from(line.trim_start().starts_with("skipped: "));
        // So begins what a failed test printed, and so the list of names after all of them.
        if line.starts_with("---- ") {
            self.left = LINES_PER_FAILURE;
        } else if line == "failures:" {
            self.left = 0;
        }
        if self.left > 0 && !line.is_empty() {
            self.left -= 1;
            self.failed.push(line.to_owned());
        }
    }
}

/// Passes the output on, line by line, and looks at it.
fn echo(output: impl BufRead, seen: &mut Seen) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in output.lines() {
        let line = line?;
        seen.look_at(&line);
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod looks {
    use super::*;

    #[test]
    fn what_failed_is_kept_and_what_passed_is_not() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nsaid first\n\nb panicked\n\n\n\
                      failures:\n    b\n\ntest result: FAILED\nskipped: no server\n";
        let mut seen = Seen::default();
        output.lines().for_each(|line| seen.look_at(line));
        assert_eq!(seen.failed, ["---- b stdout ----", "said first", "b panicked"]);
        assert_eq!(seen.skipped, 1);
    }

    #[test]
    fn a_failure_that_prints_without_end_is_cut() {
        let mut seen = Seen::default();
        seen.look_at("---- a stdout ----");
        (0..100).for_each(|_| seen.look_at("more"));
        assert_eq!(seen.failed.len(), LINES_PER_FAILURE);
        seen.look_at("---- b stdout ----");
        assert_eq!(seen.failed.last().map(String::as_str), Some("---- b stdout ----"));
    }
}
