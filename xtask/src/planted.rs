//! Planted bugs: every one must be found, and what is shipped must refuse to have them.
//!
//! All tests include the first of these; this runs it by itself, and has the page written.

use std::process::Command;

use crate::{
    reliability,
    steps::{self, Outcome},
};

/// The page, as seen from where cargo runs the test.
const PAGE: &str = "../../docs/reliability-planted.md";

/// What a release build says to the feature.
const REFUSAL: &str = "planted-bugs puts known bugs into every lock";

/// Plants them one after the other. A word names those whose name has it; then nothing is written.
pub(crate) fn run(words: &[String]) -> Outcome {
    let mut command = Command::new(env!("CARGO"));
    // The same features as all tests: the same build.
    command.args(["test", "--workspace", "--all-features", "--test", "planted", "--"]).args(words);
    if words.is_empty() {
        command.args(["--write", PAGE, "--commit", &reliability::commit()]);
    }
    steps::run("planted bugs", &mut command)
}

/// A release build of the command with the feature must not compile. Debug assertions are what tells the builds apart,
/// and to turn those off for one crate is enough and quick.
pub(crate) fn refused() -> Outcome {
    let title = "the command refuses planted bugs";
    steps::say(&format!("==> {title}"));
    let what = ["rustc", "--package", "leasehold-cli", "--bin", "leasehold", "--profile", "check"];
    let how = ["--features", "planted-bugs", "--", "-C", "debug-assertions=off"];
    let built = Command::new(env!("CARGO")).args(what).args(how).output();
    let built = built.map_err(|error| format!("{title}: cannot start cargo: {error}"))?;
    let said = String::from_utf8_lossy(&built.stderr);
    match built.status.success() {
        true => Err(format!("{title}: it was built")),
        false if said.contains(REFUSAL) => Ok(()),
        false => Err(format!("{title}: it failed for another reason: {said}")),
    }
}
