//! Do the checks bite? Every bug that can be planted must be found by the check named for it, and the same check must
//! find nothing without the bug.
//!
//! One build: this program starts itself once per check and per bug, and tells the child by a variable which bug to
//! plant. It is a test without a harness, so `cargo test --all-features` runs it with all others. With `--write FILE
//! --commit COMMIT` it writes the page; with the name of a bug or a part of it, it runs those only.
//!
//! A bug that is not found fails the run, and so does a check that ends in any other way than by finding or by not
//! finding.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command, and this is its talk")]
#![expect(clippy::unwrap_used, reason = "a check fails by panicking, with the error it got")]

mod checks;
mod child;
mod etcd;
mod memory;
mod page;
mod redis;
mod scene;
mod trials;
mod zookeeper;

use std::process::ExitCode;

use leasehold::planted::Bug;

use self::{
    child::{Ended, Planted},
    trials::{TRIALS, Trial},
};

/// What came of a trial.
struct Row {
    trial: &'static Trial,
    with: Ended,
    without: Ended,
}

impl Row {
    fn is_fine(&self) -> bool {
        let found = matches!(self.with, Ended::Found { .. }) && matches!(self.without, Ended::Nothing { .. });
        found || matches!((&self.with, &self.without), (Ended::Skipped, Ended::Skipped))
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |option: &str| words.iter().skip_while(|word| *word != option).nth(1).cloned();
    if let Some(number) = after(child::OPTION) {
        return child::main(&number);
    }
    if words.iter().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let (file, commit) = (after("--write"), after("--commit"));
    let is_filter =
        |word: &&String| !word.starts_with("--") && ![&file, &commit].contains(&&Some((*word).clone()));
    let filter = words.iter().find(is_filter).map_or("", String::as_str);
    let wanted = |trial: &Trial| "planted".contains(filter) || trial.bug.name().contains(filter);
    let mut rows = Vec::new();
    for (number, trial) in TRIALS.iter().enumerate().filter(|(_, trial)| wanted(trial)) {
        let [with, without] = [Planted::Yes, Planted::No].map(|planted| child::run(number, trial, planted));
        let row = Row { trial, with, without };
        println!("{}", page::line(&row));
        rows.push(row);
    }
    if let Some(file) = file
        && let Err(error) = std::fs::write(&file, page::page(&rows, &commit.unwrap_or_default()))
    {
        eprintln!("cannot write {file}: {error}");
        return ExitCode::FAILURE;
    }
    let untried = |bug: &Bug| TRIALS.iter().all(|trial| trial.bug != *bug);
    if let Some(bug) = Bug::ALL.into_iter().find(untried) {
        eprintln!("nothing tries to find {}; name a check for it", bug.name());
        return ExitCode::FAILURE;
    }
    let missed = rows.iter().filter(|row| !row.is_fine()).count();
    println!("planted bugs: {} of {} trials as they should be", rows.len() - missed, rows.len());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
