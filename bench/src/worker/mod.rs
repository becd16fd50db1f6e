//! This program as one of those that are measured.

mod advisory;
mod bare;
mod commands;
mod direct;
mod held;
mod local;
mod ours;

use leasehold_workload::{Ask, perform};

/// Does what is asked of it as a worker; `None` if it was not started as one.
pub(crate) fn run(words: &[String]) -> Option<Result<(), String>> {
    let (kind, words) = words.split_first()?;
    let known = ["worker", "advisory", "bare", "direct", "local"].contains(&kind.as_str());
    known.then(|| {
        let ask = Ask::read(words.iter().cloned())?;
        match (kind.as_str(), ask.scenario.as_str()) {
            ("advisory", _) => perform::<advisory::Advisory>(&ask),
            ("bare", _) => bare::run(&ask),
            ("direct", _) => direct::run(&ask),
            ("local", _) => perform::<local::Local>(&ask),
            (_, "held") => held::run(&ask),
            _ => perform::<ours::Ours>(&ask),
        }
    })
}

/// What went wrong, in a sentence.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
