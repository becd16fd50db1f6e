//! The trials as lines and as a page.

use std::fmt::Write as _;

use crate::{Row, child::Ended, trials::WAITING};

const INTRODUCTION: &str = "\
# Do the checks bite?

Written by `cargo xtask planted`; do not edit by hand. Each mistake below is one a lock can have; where we know whose did, it
says so. It is planted on purpose (feature `planted-bugs`, one build, chosen by `LEASEHOLD_PLANTED_BUG`), and the check
named for it must find it; the same check must find nothing without it. *After* is how many requests to the store the check had
made by then, and how many it makes where there is nothing to find. Every test run repeats all of this; a release build of
the command refuses the feature.

";

/// The whole page.
pub(crate) fn page(rows: &[Row], commit: &str) -> String {
    let mut page = INTRODUCTION.to_owned();
    let _ = writeln!(page, "All of this was last so at commit {commit}.\n");
    page.push_str("| mistake | seen in | planted as | found by | after | what it said |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for row in rows {
        let (after, said) = told(row);
        let (trial, check) = (row.trial, row.trial.check.name());
        let _ = writeln!(
            page,
            "| {} | {} | `{}` | {check} | {after} | {} |",
            trial.mistake,
            trial.seen,
            trial.bug.name(),
            said.replace('|', "\\|"),
        );
    }
    page.push_str("\n## Not planted\n\n");
    for mistake in WAITING {
        let _ = writeln!(page, "- {mistake}");
    }
    page
}

/// One row, for whoever watches.
pub(crate) fn line(row: &Row) -> String {
    let verdict = match (&row.with, row.is_fine()) {
        // Counted by whoever reads our lines, as in other tests.
        (Ended::Skipped, true) => "skipped:",
        (_, true) => "ok",
        (_, false) => "FAILED",
    };
    let (after, said) = told(row);
    format!("{verdict:8} {:26} {}; {after}; {said}", row.trial.bug.name(), row.trial.check.name())
}

/// After how many requests, with the bug and without; and what was said about it.
fn told(row: &Row) -> (String, String) {
    match (&row.with, &row.without) {
        (Ended::Found { requests, what }, Ended::Nothing { requests: whole }) => {
            (format!("{requests} of {whole}"), shortened(what))
        }
        (Ended::Skipped, Ended::Skipped) => {
            ("skipped".to_owned(), "skipped: its server is not installed".to_owned())
        }
        (Ended::Nothing { requests }, _) => (requests.to_string(), "NOT FOUND".to_owned()),
        (_, Ended::Found { what, .. }) => {
            (String::new(), format!("FOUND WITHOUT THE BUG: {}", shortened(what)))
        }
        (Ended::Oddly(how), _) | (_, Ended::Oddly(how)) => (String::new(), format!("ENDED ODDLY: {how}")),
        (Ended::Found { .. } | Ended::Skipped, Ended::Nothing { .. } | Ended::Skipped) => {
            (String::new(), "SKIPPED ONCE ONLY".to_owned())
        }
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 110;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
