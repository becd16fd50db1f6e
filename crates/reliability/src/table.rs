//! The reports as a page: Markdown, written by machine.
//!
//! A run of some stores takes the place of their rows on the page that is there, and leaves the others: every table names
//! the store first, and "What was done" says when and of which commit each row is.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    packs::{Promise, STORES, Store},
    report::{Report, percentile},
};

/// What the page says about the run as a whole.
#[derive(Clone, Debug)]
pub struct Heading {
    /// When it was.
    pub date: String,
    /// Of which commit.
    pub commit: String,
    /// On what machine.
    pub machine: String,
    /// How to repeat it.
    pub command: String,
    /// Rows that are not there, with the reason.
    pub missing: Vec<String>,
}

/// How a line about something that is not on the page begins, and one about a round that was not carried through.
const MISSING: &str = "Not shown: ";
const GIVEN_UP: &str = "Given up: ";

const INTRODUCTION: &str = "\
# Reliability

Written by `cargo xtask reliability`; do not edit by hand. Real servers, workers as processes of their own, faults drawn
from a seed, every event on disk, checkers over the history. How it works: `crates/reliability`, and
`crates/testkit/src/history` for the checkers.

An *overlap* is two who believed at once what excludes each other, each from the return of its grant to the earliest of its
release, its loss, its own deadline and its death: every one counted is a true violation. A *lost update* is an
acknowledged write that left no trace: in a cell that takes every write (*plain*), where a holder that was paused after
its last look at the lock, or that worked on beyond its lease without a look, as some do here on purpose, overwrites its
successor, as no lock can prevent; and in a cell that refuses smaller fences (*fenced*). *In order* are stretches of at
most 2500 grants of a name that a single lock could have gone through, by an exhaustive search that knows nothing of the
other checkers. Rows marked *hint* may show overlaps under their faults, and say so; controls must show them, or the
checkers would not bite. *Peers* are other libraries in the same workload under the same faults, without renewals and
fences, judged by the validity that they themselves return. A name is *stuck* if it was asked for during a lease and
more after all faults were healed and after its last holder, and nobody got it, nor after that, while those who still
waited came to an end. A round that could not be carried through is *given up* by name, and judged up to there.

How late a loss was *told* is for how long the holder's process ran after its deadline before its guard told it, while it
did nothing but listen: a process that is stopped, or waits for an answer of its own, cannot be told.

The *claim* is what the library itself says of the store: S0 a hint, S1 exclusive while the store keeps its state and
clocks are sane, S2 also through the loss of any single node, S3 fences grow through every fault.

That the checks find mistakes that are known is shown by planting them: `docs/reliability-planted.md`.
";

/// The whole page. What the page `before` says of stores that did not run now, stays.
pub fn page(heading: &Heading, rows: &[(&Store, Report)], before: &str) -> String {
    let mut page = INTRODUCTION.to_owned();
    let Heading { machine, command, missing, .. } = heading;
    let _ = writeln!(page, "\nThe last run was on {machine}, by `{command}`.\n");
    let given_up = rows.iter().flat_map(|(_, report)| &report.given_up).map(|row| (GIVEN_UP, row));
    for (what, row) in missing.iter().map(|row| (MISSING, row)).chain(given_up) {
        let _ = writeln!(page, "- {what}{}", row.lines().next().unwrap_or_default());
    }
    for line in still_missing(before, rows) {
        let _ = writeln!(page, "{line}");
    }
    let sections = [
        violations(rows),
        claims(rows),
        operations(heading, rows),
        repetition(rows),
        outages(rows),
        errors(rows),
    ];
    for section in sections {
        page.push_str(&section.among(before));
    }
    page
}

/// What the page before did not show, or gave up, of stores that did not run now.
fn still_missing<'a>(before: &'a str, rows: &[(&Store, Report)]) -> impl Iterator<Item = &'a str> {
    let others: Vec<&str> = STORES.iter().map(|store| store.title).collect();
    let ran: Vec<&str> = rows.iter().map(|(store, _)| store.title).collect();
    // The longest, because one title may begin with another.
    let of = move |line: &str| {
        let line = line.strip_prefix("- ")?;
        let row = line.strip_prefix(MISSING).or_else(|| line.strip_prefix(GIVEN_UP))?;
        others.iter().copied().filter(|title| row.starts_with(title)).max_by_key(|title| title.len())
    };
    before.lines().filter(move |line| of(line).is_some_and(|title| !ran.contains(&title)))
}

/// One table with its title and what is to be said before it.
struct Section {
    title: &'static str,
    preface: &'static str,
    head: &'static [&'static str],
    /// The stores it is about.
    stores: Vec<&'static str>,
    lines: Vec<Vec<String>>,
}

impl Section {
    fn new(
        title: &'static str,
        head: &'static [&'static str],
        rows: &[(&Store, Report)],
        lines: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let stores = rows.iter().map(|(store, _)| store.title).collect();
        Self { title, preface: "", head, stores, lines: lines.collect() }
    }

    /// As Markdown, with the lines of other stores from the page before, in the order of all stores.
    fn among(&self, before: &str) -> String {
        let written = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let heading = format!("## {}", self.title);
        let old = before.lines().skip_while(|line| *line != heading).skip(1);
        let old = old.take_while(|line| !line.starts_with("## "));
        let head: Vec<String> = self.head.iter().map(|&cell| cell.to_owned()).collect();
        let old: Vec<String> = old.filter(|line| line.starts_with("| ")).map(str::to_owned).collect();
        // A page with other columns has nothing to give.
        let old = if old.first() == Some(&written(&head)) { &old[..] } else { &[] };
        let new: Vec<String> = self.lines.iter().map(|cells| written(cells)).collect();
        let mut text =
            format!("\n{heading}\n\n{}{}\n|{}\n", self.preface, written(&head), " --- |".repeat(head.len()));
        for store in STORES {
            let source = if self.stores.contains(&store.title) { &new[..] } else { old };
            let start = format!("| {} |", store.title);
            for line in source.iter().filter(|line| line.starts_with(&start)) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

fn violations(rows: &[(&Store, Report)]) -> Section {
    const HEAD: &[&str] = &[
        "store",
        "row must be",
        "claim",
        "server",
        "rounds",
        "operations",
        "faults",
        "locks granted",
        "overlaps",
        "lost, plain",
        "lost, fenced",
        "fences out of order",
        "held after deadline",
        "leaks",
        "names stuck",
        "verdict",
    ];
    let row = |(store, report): &(&Store, Report)| {
        let fenced = |count: u64| if is_ours(store) { count.to_string() } else { "no fences".to_owned() };
        vec![
            store.title.to_owned(),
            promise(store.promise).to_owned(),
            level(store, report),
            report.version.clone(),
            report.seeds.len().to_string(),
            report.operations().to_string(),
            report.faults.values().sum::<u64>().to_string(),
            report.grants.to_string(),
            report.overlaps.to_string(),
            report.plain_lost.to_string(),
            fenced(report.fenced_lost),
            fenced(report.fence_faults),
            report.false_held.to_string(),
            report.leaks.len().to_string(),
            report.stuck.len().to_string(),
            verdict(store, report),
        ]
    };
    Section::new("What was found", HEAD, rows, rows.iter().map(row))
}

/// What the library says of each store, beside what was seen of it.
fn claims(rows: &[(&Store, Report)]) -> Section {
    const HEAD: &[&str] = &["store", "claim", "a lock may be granted twice if", "seen here"];
    let ours = rows.iter().filter(|(store, _)| is_ours(store));
    let row = |(store, report): &(&Store, Report)| {
        let unless = report.claim.map(|claim| claim.unless.to_owned());
        let seen = match (report.overlaps, report.fenced_lost + report.fence_faults) {
            (0, 0) => "never, and fences held".to_owned(),
            (overlaps, 0) => format!("{overlaps} times; fences held"),
            (overlaps, fences) => format!("{overlaps} times, and {fences} times fences failed"),
        };
        vec![store.title.to_owned(), level(store, report), unless.unwrap_or_default(), seen]
    };
    Section::new("What is claimed", HEAD, rows, ours.map(row))
}

/// Whether it is our lock that is shown, which has fences.
fn is_ours(store: &Store) -> bool {
    matches!(store.promise, Promise::Exclusive | Promise::Hint)
}

/// What the store itself claims.
fn level(store: &Store, report: &Report) -> String {
    let claim = report.claim.filter(|_| is_ours(store));
    claim.map_or_else(|| "none".to_owned(), |claim| claim.level.to_string())
}

fn operations(heading: &Heading, rows: &[(&Store, Report)]) -> Section {
    const HEAD: &[&str] = &[
        "store",
        "date",
        "commit",
        "seconds under faults",
        "operations",
        "done",
        "refused",
        "unknown",
        "writes taken",
        "stale writes refused",
        "locks lost",
        "told late, p50",
        "p99",
        "max",
        "granted past deadline",
        "in order / impossible / undecided",
        "first seed",
    ];
    let row = |(store, report): &(&Store, Report)| {
        let mut late = report.notices.clone();
        late.sort_unstable();
        let late_by = |percent| milliseconds(percentile(&late, percent));
        let first = report.seeds.first().map(ToString::to_string);
        vec![
            store.title.to_owned(),
            heading.date.clone(),
            heading.commit.clone(),
            report.seconds.to_string(),
            report.operations().to_string(),
            report.done.to_string(),
            report.failed.to_string(),
            report.unknown.to_string(),
            report.writes[0].to_string(),
            if report.writes[1] == 0 { "not exercised".to_owned() } else { report.writes[1].to_string() },
            late.len().to_string(),
            late_by(50),
            late_by(99),
            late_by(100),
            report.stillborn.to_string(),
            orders(store, report),
            first.unwrap_or_default(),
        ]
    };
    Section::new("What was done", HEAD, rows, rows.iter().map(row))
}

/// What workers did, and the command for the same.
fn repetition(rows: &[(&Store, Report)]) -> Section {
    const HEAD: &[&str] = &["store", "kinds of locks", "command"];
    let row = |(store, report): &(&Store, Report)| {
        let kinds: Vec<String> = store.crew.kinds.iter().map(ToString::to_string).collect();
        vec![store.title.to_owned(), kinds.join(", "), format!("`{}`", report.command)]
    };
    Section {
        preface: "The same seed gives the same faults in the same order, not the same interleaving.\n\n",
        ..Section::new("How to repeat it", HEAD, rows, rows.iter().map(row))
    }
}

/// The search goes by fences, so it says nothing of locks without.
fn orders(store: &Store, report: &Report) -> String {
    if !is_ours(store) {
        return "no fences".to_owned();
    }
    report.orders.map(|count| count.to_string()).join(" / ")
}

/// Unavailability and recovery per kind of fault.
fn outages(rows: &[(&Store, Report)]) -> Section {
    const HEAD: &[&str] = &[
        "store",
        "fault",
        "times",
        "unavailable, p50",
        "p99",
        "max",
        "slowest",
        "recovery, p50",
        "p99",
        "max",
    ];
    let lines = rows.iter().flat_map(|(store, report)| {
        report.outages.iter().map(|(kind, measured)| {
            let mut line = vec![store.title.to_owned(), kind.clone(), measured.len().to_string()];
            for which in [0, 1] {
                let mut times: Vec<u64> = measured.iter().map(|times| times[which]).collect();
                times.sort_unstable();
                line.extend([50, 99, 100].map(|percent| milliseconds(percentile(&times, percent))));
            }
            let slowest = report.slowest.get(kind).map(|(_, name)| name.clone());
            line.insert(6, slowest.unwrap_or_default());
            line
        })
    });
    Section {
        preface: "A name could not be had while somebody asked for it and nobody held it. Per fault, the slowest name counts; faults overlap, and an outage counts for each that it touches. \
                  Recovery of a killed worker's locks counts from its death.\n\n",
        ..Section::new("Faults by kind, and how long locks could not be had", HEAD, rows, lines)
    }
}

/// What workers met.
fn errors(rows: &[(&Store, Report)]) -> Section {
    const HEAD: &[&str] = &["store", "error", "times"];
    let lines = rows.iter().flat_map(|(store, report)| {
        report
            .errors
            .iter()
            .map(|(error, count)| vec![store.title.to_owned(), error.clone(), count.to_string()])
    });
    Section::new("Errors that workers met", HEAD, rows, lines)
}

fn promise(promise: Promise) -> &'static str {
    match promise {
        Promise::Exclusive => "exclusive",
        Promise::Hint => "hint (S0)",
        Promise::Broken => "found broken (control)",
        Promise::Peer => "shown (peer)",
    }
}

fn verdict(store: &Store, report: &Report) -> String {
    let broken = report.broken(store.promise);
    match (store.promise, broken.is_empty()) {
        (Promise::Broken, true) => "caught".to_owned(),
        (Promise::Peer, true) if report.overlaps == 0 => "no overlap found".to_owned(),
        (Promise::Peer, true) => format!("{} overlaps", report.overlaps),
        (_, true) if report.overlaps > 0 => "broken, as said".to_owned(),
        (_, true) => "holds".to_owned(),
        (_, false) => format!("**{}**", broken.join("; ")),
    }
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{} ms", nanoseconds.div_ceil(1_000_000))
}

/// Faults by kind, on one line.
pub fn by_kind(counts: &BTreeMap<String, u64>) -> String {
    let kinds: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs::STORES;

    #[test]
    fn a_page_shows_every_row_and_every_violation() {
        let heading = Heading {
            date: "today".to_owned(),
            commit: "abc".to_owned(),
            machine: "here".to_owned(),
            command: "cargo xtask reliability".to_owned(),
            missing: vec![format!("{}: no server\nits log", STORES[0].title)],
        };
        let bad = Report { grants: 5, overlaps: 3, ..Report::default() };
        let rows: Vec<(&Store, Report)> = STORES.iter().map(|store| (store, bad.clone())).collect();
        let first = page(&heading, &rows, "");
        assert!(first.contains(&format!("- Not shown: {}: no server\n", STORES[0].title)), "{first}");
        for store in STORES {
            assert!(first.contains(store.title), "{}", store.title);
        }
        assert!(
            first.contains("**3 overlaps**") && first.contains("broken, as said") && first.contains("caught")
        );
        let nothing = Heading { missing: Vec::new(), ..heading.clone() };
        assert_eq!(page(&nothing, &[], &first), first, "a run of nothing changes nothing");
        assert!(!page(&nothing, &rows[..1], &first).contains(MISSING), "it is shown now");
    }

    #[test]
    fn a_run_of_one_store_takes_the_place_of_its_rows_alone() {
        let heading = |commit: &str| Heading {
            date: "today".to_owned(),
            commit: commit.to_owned(),
            machine: "here".to_owned(),
            command: "cargo xtask reliability".to_owned(),
            missing: Vec::new(),
        };
        let outages = BTreeMap::from([("server paused".to_owned(), vec![[7, 7]])]);
        let old = Report { grants: 5, overlaps: 3, outages, ..Report::default() };
        let rows: Vec<(&Store, Report)> = STORES.iter().map(|store| (store, old.clone())).collect();
        let before = page(&heading("old"), &rows, "");
        let new = Report { grants: 9, ..Report::default() };
        let after = page(&heading("new"), &[(&STORES[1], new)], &before);
        let lines = |page: &str, store: usize| -> Vec<String> {
            let start = format!("| {} |", STORES[store].title);
            page.lines().filter(|line| line.starts_with(&start)).map(str::to_owned).collect()
        };
        assert_eq!(lines(&after, 0), lines(&before, 0));
        assert_eq!(lines(&after, 2), lines(&before, 2));
        let [found, _, done, _] = &lines(&after, 1)[..] else { panic!("{after}") };
        assert!(found.contains("| 9 | 0 |") && done.contains("| new |"), "{found} {done}");
    }
}
