//! Leasehold under faults: builds what it takes, runs it, and has the page written.
//!
//! With `--store` or `--short` nothing is written unless `--write docs/reliability.md` asks for it: a look at one store is not
//! its row.

use std::process::Command;

use crate::{
    steps::{self, Build, Outcome},
    wheel,
};

/// The page.
const PAGE: &str = "docs/reliability.md";

/// Other libraries, to compare with: a crate that is not of this workspace.
const PEERS: &str = "crates/reliability/peers/Cargo.toml";

/// For every change: a few seconds per store, always under the same faults.
pub(crate) fn short(allow_missing: bool) -> Outcome {
    stores(Build::AsTests, allow_missing, &["--short", "--seed", "1"])
}

/// Runs it. The words are those of `leasehold-reliability`, whose `--help` explains them.
pub(crate) fn run(words: &[String]) -> Outcome {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words == ["--short"] {
        return short(false);
    }
    if words.contains(&"--short") {
        return stores(Build::AsTests, false, &words);
    }
    peers(&words);
    let page = if words.contains(&"--store") { &[][..] } else { &["--write", PAGE] };
    stores(Build::Release, false, &[&words, page].concat())
}

fn stores(build: Build, allow_missing: bool, words: &[&str]) -> Outcome {
    let programs = ["leasehold-reliability", "leasehold-worker"].map(|name| ("leasehold-reliability", name));
    let mut command = Command::new(steps::build("workers and nemesis", build, &programs)?);
    command.args(["--commit", &commit()]).args(words);
    if allow_missing {
        command.env("LEASEHOLD_ALLOW_MISSING", "1");
    }
    wheel::name_to(&mut command);
    steps::run("stores under faults", &mut command)
}

/// Those that cannot be built are missing from the page, which says so.
fn peers(words: &[&str]) {
    let store = words.iter().position(|word| *word == "--store").and_then(|at| words.get(at + 1));
    if store.is_some_and(|store| !store.starts_with("peer-")) {
        return;
    }
    let folder = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let build = ["build", "--release", "--locked", "--manifest-path", PEERS, "--target-dir", &folder];
    if let Err(problem) = steps::cargo("other libraries", &build) {
        steps::say(&format!("skipped: other libraries cannot be built: {problem}"));
    }
}

/// What is checked out, and whether it was changed since.
pub(crate) fn commit() -> String {
    let ask = |words: &[&str]| {
        let answer = Command::new("git").args(words).output().ok().filter(|answer| answer.status.success());
        answer.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    };
    let changed =
        ask(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changed| !changed.is_empty());
    let commit = ask(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if changed { format!("{commit} with changes") } else { commit }
}
