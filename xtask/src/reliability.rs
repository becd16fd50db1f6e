//! Leasehold under faults: builds what it takes, runs it, and has the page written.
//!
//! With `--store` or `--short` nothing is written: a page has all rows of one long run, or is not one.

use std::process::Command;

use crate::steps::{self, Outcome};

/// The page.
const PAGE: &str = "docs/reliability.md";

/// Runs it. The words are those of `leasehold-reliability`: `--store`, `--seconds`, `--seed`, `--short`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let is_given = |word: &str| words.iter().any(|given| given == word);
    // A short run is for every change, and the debug build is there by then.
    let profile = if is_given("--short") { "dev" } else { "release" };
    let build = ["build", "--profile", profile, "--package", "leasehold-reliability"];
    steps::cargo("workers and nemesis", &build)?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--profile", profile, "--package", "leasehold-reliability"]);
    command.args(["--bin", "leasehold-reliability", "--", "--commit", &commit()]).args(words);
    if !is_given("--store") && !is_given("--short") {
        command.args(["--write", PAGE]);
    }
    steps::run("stores under faults", &mut command)
}

/// What is checked out, and whether it was changed since.
fn commit() -> String {
    let ask = |words: &[&str]| {
        let answer = Command::new("git").args(words).output().ok().filter(|answer| answer.status.success());
        answer.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    };
    let changed =
        ask(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changed| !changed.is_empty());
    let commit = ask(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if changed { format!("{commit} with changes") } else { commit }
}
