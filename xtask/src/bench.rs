//! Leasehold against the limit and against other libraries: builds what it takes, runs it, and has the page written.
//!
//! With `--quick` or `--only` the page goes to the build's folder: one in `docs/` has all rows of one long run, or is
//! not one.

use std::process::Command;

use crate::{
    install,
    reliability::commit,
    steps::{self, Build, Outcome},
    wheel,
};

/// The page of a full run, and of any other.
const PAGE: &str = "docs/benchmarks.md";
const DRAFT: &str = "target/bench/benchmarks.md";

/// For every change: that everything runs and is exact, never how fast it is.
pub(crate) fn smoke() -> Outcome {
    measure(Build::AsTests, &["--quick"], DRAFT)
}

/// Runs it. The words are those of `leasehold-bench`: `--quick`, `--only SECTION`. Others are refused before anything is
/// built; which sections there are, only the program knows.
pub(crate) fn run(words: &[String]) -> Outcome {
    understand(words)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_quick = words.contains(&"--quick");
    let page = if is_quick || words.contains(&"--only") { DRAFT } else { PAGE };
    let peers = if is_quick { &[][..] } else { &["--build-peers"] };
    if !is_quick {
        // A store that is not here is named on the page, with the reason.
        install::all(true)?;
    }
    measure(Build::Release, &[&words, peers].concat(), page)
}

fn understand(words: &[String]) -> Outcome {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => {}
            "--only" if words.next().is_some_and(|section| !section.starts_with('-')) => {}
            "--only" => return Err("--only needs the name of a section".to_owned()),
            other => return Err(format!("unknown option {other:?}; there are --quick and --only SECTION")),
        }
    }
    Ok(())
}

/// The command is built too: one of the ratios is its own.
fn measure(build: Build, words: &[&str], page: &str) -> Outcome {
    let programs = [("leasehold-bench", "leasehold-bench"), ("leasehold-cli", "leasehold")];
    let program = steps::build("what is measured", build, &programs)?;
    let folder = std::path::Path::new(page).parent().unwrap_or(std::path::Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut command = Command::new(program);
    command.args(["--commit", &commit(), "--page", page]).args(words);
    wheel::name_to(&mut command);
    steps::run("against the limit and the others", &mut command)
}
