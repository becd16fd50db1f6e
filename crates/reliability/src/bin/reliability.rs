//! Runs stores under faults, says what was found, and writes the page.
//!
//! Longer runs are several rounds, each with servers, workers and a seed of its own, and each checked by itself: what is
//! kept of it are counts. A round that finds a violation keeps its folder and prints the command that repeats it.
//!
//! With `--operations` the rounds of stores that exclude go on until so many acquires and releases were answered.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Parser;
use leasehold_reliability::{
    enclosure, fleet,
    limit::Limit,
    options::{Goal, Options},
    packs::{Promise, STORES, Store},
    report::Report,
    round::{self, Plan},
    table::{self, Heading},
};
use leasehold_testkit::servers::Missing;

/// The longest round, in seconds.
const ROUND: u64 = 60;

/// The longest of a run that counts operations: to start and to judge takes time too.
const LONG_ROUND: u64 = 120;

/// The first round of a run that counts operations: how fast the store is, is not known yet.
const FIRST: u64 = 15;

/// About so many operations are in a round at most: its history must fit into memory.
const HISTORY: u64 = 400_000;

/// So many rounds of a store may be given up in a run that counts operations, because a server or the machine failed in
/// another way than was asked for. They are judged up to there, and the page names them.
const GIVEN_UP: usize = 3;

/// Not in the run for every change, which has its limit: another row has the same server.
const ASIDE: [&str; 2] = ["postgres-pooled", "mongodb-single"];

/// How long the run for every change may take, with all stores.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What a run that counts operations ends with, whatever was done until then.
const ROUNDS: u64 = 1000;

fn main() -> ExitCode {
    let options = Options::parse();
    let wanted = |store: &&Store| match &options.store {
        Some(name) => name == store.name,
        None => !options.short || (store.promise != Promise::Peer && !ASIDE.contains(&store.name)),
    };
    let stores: Vec<&Store> = STORES.iter().filter(wanted).collect();
    if stores.is_empty() {
        let names: Vec<&str> = STORES.iter().map(|store| store.name).collect();
        say(&format!("no such store; there are {}", names.join(", ")));
        return ExitCode::from(64);
    }
    let seed = options.seed.unwrap_or_else(|| u64::from(std::process::id()));
    let (mut fine, mut rows, mut missing) = (true, Vec::new(), Vec::new());
    if let Err(problem) = enclosure::enter() {
        say(&format!("skipped: partitions: {problem}"));
        missing.push(format!("partitions of a primary: {problem}"));
    }
    for (store, report) in several_at_once(&stores, &options, seed) {
        fine &= match &report {
            Ok(report) => report.broken(store.promise).is_empty(),
            Err(problem) => is_skipped(store, problem),
        };
        match report {
            Ok(report) => rows.push((store, report)),
            Err(problem) => {
                // Counted by whoever reads our lines, as in tests.
                let what =
                    if is_skipped(store, &problem) { "skipped" } else { "could not be carried through" };
                say(&format!("{what}: {}: {problem}", store.name));
                missing.push(format!("{}: {problem}", store.title));
            }
        }
    }
    if let Some(file) = &options.write
        && let Err(error) = write(file, &heading(&options, seed, missing), &rows)
    {
        say(&format!("cannot write {}: {error}", file.display()));
        fine = false;
    }
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the page; rows of other stores stay as they are.
fn write(file: &Path, heading: &Heading, rows: &[(&Store, Report)]) -> std::io::Result<()> {
    let before = match std::fs::read_to_string(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        before => before.unwrap_or_default(),
    };
    std::fs::write(file, table::page(heading, rows, &before))
}

/// All stores, so many at a time as was asked for, in the order of the table.
fn several_at_once<'a>(
    stores: &[&'a Store],
    options: &Options,
    seed: u64,
) -> Vec<(&'a Store, Result<Report, String>)> {
    let (next, reports) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let limit = if options.short { Limit::of(LIMIT, say) } else { Limit::none() };
    let take_turns = || {
        while let Some(store) = stores.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = limit.during(store.name, || all_rounds(store, options, seed));
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            reports.insert(store.name, report);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.together {
            scope.spawn(take_turns);
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    stores.iter().filter_map(|store| Some((*store, reports.remove(store.name)?))).collect()
}

/// A store whose server is not installed, where that is allowed; or another library, which proves nothing of ours.
fn is_skipped(store: &Store, problem: &str) -> bool {
    let may_be_missing = Missing::policy() == Missing::Skip && problem.contains("is not installed");
    may_be_missing || store.promise == Promise::Peer
}

fn all_rounds(store: &Store, options: &Options, seed: u64) -> Result<Report, String> {
    if !programs()?.join(store.crew.program).exists() {
        return Err(format!("its worker {} is not built", store.crew.program));
    }
    let alone = Options { store: Some(store.name.to_owned()), ..options.clone() };
    let mut sum = Report { command: alone.command(seed), ..Report::default() };
    let mut index = 0;
    let began = Instant::now();
    loop {
        let seconds = match options.goal(store) {
            Goal::Seconds(wanted) if index == wanted.div_ceil(ROUND).max(1) => return Ok(sum),
            Goal::Seconds(wanted) => wanted / wanted.div_ceil(ROUND).max(1),
            Goal::Operations(wanted) if sum.answered() >= wanted => return Ok(sum),
            Goal::Operations(_) if index == ROUNDS => {
                return Err(format!("only {} operations were answered in {ROUNDS} rounds", sum.answered()));
            }
            Goal::Operations(wanted) => next_round(&sum, wanted),
        };
        let seed = seed + index;
        index += 1;
        say(&format!("{}: round {index}, {seconds} s, seed {seed}", store.name));
        let (report, problem) = one_round(store, options, seconds, seed)?;
        let judged = report.operations();
        sum.add(report);
        if let Some(problem) = problem {
            let what =
                format!("round {index} with seed {seed}, judged by its {judged} operations up to there");
            say(&format!("{}: given up: {what}: {problem}", store.name));
            if !may_be_given_up(&problem, options) || sum.given_up.len() == GIVEN_UP {
                return Err(format!("{what}: {problem}"));
            }
            sum.given_up.push(format!("{}, {what}: {problem}", store.title));
        }
        let took = began.elapsed().as_secs();
        say(&format!("{}: {} in {took} s", store.name, summary(&sum)));
    }
}

/// Whether a round may be given up: not if one of our own workers ended by itself.
fn may_be_given_up(problem: &str, options: &Options) -> bool {
    options.operations.is_some() && !problem.contains(fleet::DESERTED)
}

/// How many seconds the next round of a run is to have that counts operations: as many as are needed for what is
/// missing, if that fits into memory.
fn next_round(sum: &Report, wanted: u64) -> u64 {
    if sum.seconds == 0 {
        return FIRST;
    }
    let speed = (sum.answered() / sum.seconds).max(1);
    let most = (HISTORY / speed).clamp(1, LONG_ROUND);
    ((wanted - sum.answered()) / speed + 1).clamp(FIRST.min(most), most)
}

/// Where the programs of workers are: beside this one.
fn programs() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.parent().map(Path::to_owned).unwrap_or_default())
}

/// What was found in a round, and what kept it from being carried through, if anything did.
fn one_round(
    store: &Store,
    options: &Options,
    seconds: u64,
    seed: u64,
) -> Result<(Report, Option<String>), String> {
    let folder = tempfile::Builder::new().prefix("leasehold-reliability-").tempdir();
    let folder = folder.map_err(|error| error.to_string())?;
    let manner = options.manner(store);
    let plan = Plan { programs: programs()?, folder: folder.path().to_owned(), seconds, seed, manner };
    let mut report = Report::default();
    let ran = round::run(store, &plan, &mut report).map_err(|error| error.to_string());
    let broken = report.broken(store.promise);
    if ran.is_err() || !broken.is_empty() || options.keep {
        say(&format!("{}: {}", store.name, broken.join("; ")));
        let samples = report.samples.iter().chain(&report.leaks);
        samples.for_each(|line| say(&format!("  {line}")));
        report.stuck.iter().for_each(|name| say(&format!("  nobody got {name} any more")));
        say(&format!("its history is in {}", folder.keep().display()));
        say(&format!("repeat it with: {}", manner.command(store, seconds, seed)));
    }
    Ok((report, ran.err()))
}

fn summary(report: &Report) -> String {
    let Report { grants, overlaps, plain_lost, fenced_lost, fence_faults, .. } = report;
    let (operations, leaks) = (report.operations(), report.leaks.len());
    let faults = table::by_kind(&report.faults);
    format!(
        "{operations} operations, {grants} grants; {overlaps} overlaps, lost {plain_lost} plain and {fenced_lost} \
         fenced, {fence_faults} fence faults, {leaks} leaks; {faults}"
    )
}

fn heading(options: &Options, seed: u64, missing: Vec<String>) -> Heading {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Heading {
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        commit: options.commit.clone(),
        machine: format!("Linux {}, {cores} cores", read("/proc/sys/kernel/osrelease")),
        command: options.command(seed),
        missing,
    }
}

#[expect(clippy::print_stderr, reason = "this is a command, and this is its talk")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_fits_into_memory_and_is_as_long_as_what_is_missing_needs() {
        let after = |seconds, done| Report { seconds, done, ..Report::default() };
        assert_eq!(next_round(&after(0, 0), 1_000_000), FIRST);
        assert_eq!(next_round(&after(10, 10_000), 1_000_000), LONG_ROUND);
        assert_eq!(next_round(&after(10, 10_000), 35_000), 26);
        assert_eq!(next_round(&after(10, 10_000), 10_001), FIRST);
        assert_eq!(next_round(&after(10, 1_000_000), 9_000_000), 4);
    }
}
