//! Runs stores under faults, says what was found, and writes the page.
//!
//! Longer runs are several rounds, each with servers, workers and a seed of its own. A round that finds a violation
//! keeps its folder and prints the command that repeats it.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use leasehold_reliability::{
    packs::{STORES, Store},
    report::Report,
    round::{self, Plan},
    table::{self, Heading},
};
use leasehold_testkit::servers::Missing;

/// The longest round: a history must fit into memory.
const ROUND: u64 = 60;

/// Leasehold under faults.
#[derive(Debug, Parser)]
struct Options {
    /// One store instead of all: see the names it prints
    #[arg(long)]
    store: Option<String>,
    /// Seconds under faults, per store
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The seed of the first round; the next round has the next
    #[arg(long)]
    seed: Option<u64>,
    /// A few seconds per store, with short leases: for every change
    #[arg(long)]
    short: bool,
    /// The lease, in milliseconds
    #[arg(long, default_value_t = 2000)]
    lease: u64,
    /// The longest work under a lock, in milliseconds
    #[arg(long, default_value_t = 20)]
    work: u64,
    /// Tasks in each worker, instead of the store's own number
    #[arg(long)]
    tasks: Option<u32>,
    /// Names per kind, instead of the store's own number
    #[arg(long)]
    names: Option<u64>,
    /// Keep the histories of rounds in which nothing was found, too
    #[arg(long)]
    keep: bool,
    /// Write the page to this file
    #[arg(long)]
    write: Option<PathBuf>,
    /// The commit, for the page
    #[arg(long, default_value = "unknown")]
    commit: String,
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    if options.short {
        (options.seconds, options.lease) = (12, 1000);
    }
    let wanted = |store: &&Store| options.store.as_deref().is_none_or(|name| name == store.name);
    let stores: Vec<&Store> = STORES.iter().filter(wanted).collect();
    if stores.is_empty() {
        let names: Vec<&str> = STORES.iter().map(|store| store.name).collect();
        say(&format!("no such store; there are {}", names.join(", ")));
        return ExitCode::from(64);
    }
    let seed = options.seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut fine = true;
    let mut rows = Vec::new();
    for store in stores {
        let report = all_rounds(store, &options, seed);
        fine &= match &report {
            Ok(report) => report.broken(store.promise).is_empty(),
            Err(problem) => is_skipped(problem),
        };
        match report {
            Ok(report) => rows.push((store, report)),
            // Counted by whoever reads our lines, as in tests.
            Err(problem) if is_skipped(&problem) => say(&format!("skipped: {}: {problem}", store.name)),
            Err(problem) => say(&format!("{}: could not be carried through: {problem}", store.name)),
        }
    }
    if let Some(file) = &options.write
        && let Err(error) = std::fs::write(file, table::page(&heading(&options, seed), &rows))
    {
        say(&format!("cannot write {}: {error}", file.display()));
        fine = false;
    }
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A store whose server is not installed, where that is allowed.
fn is_skipped(problem: &str) -> bool {
    Missing::policy() == Missing::Skip && problem.contains("is not installed")
}

fn all_rounds(store: &Store, options: &Options, seed: u64) -> Result<Report, String> {
    let mut sum = Report::default();
    let rounds = options.seconds.div_ceil(ROUND).max(1);
    for index in 0..rounds {
        let seed = seed + index;
        let seconds = options.seconds / rounds;
        say(&format!("{}: round {} of {rounds}, {seconds} s, seed {seed}", store.name, index + 1));
        let report = one_round(store, options, seconds, seed)?;
        say(&format!("{}: {}", store.name, summary(&report)));
        sum.add(report);
    }
    Ok(sum)
}

fn one_round(store: &Store, options: &Options, seconds: u64, seed: u64) -> Result<Report, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = tempfile::Builder::new().prefix("leasehold-reliability-").tempdir();
    let folder = folder.map_err(|error| error.to_string())?;
    let plan = Plan {
        program: program.with_file_name("leasehold-worker"),
        folder: folder.path().to_owned(),
        seconds,
        seed,
        lease: Duration::from_millis(options.lease),
        work: Duration::from_millis(options.work),
        tasks: options.tasks,
        names: options.names,
    };
    let mut report = Report::default();
    let ran = round::run(store, &plan, &mut report).map_err(|error| error.to_string());
    let broken = report.broken(store.promise);
    if ran.is_err() || !broken.is_empty() || options.keep {
        say(&format!("{}: {}", store.name, broken.join("; ")));
        let samples = report.samples.iter().chain(&report.leaks).chain(&report.stuck);
        samples.for_each(|line| say(&format!("  {line}")));
        say(&format!("its history is in {}", folder.keep().display()));
        let Options { lease, work, .. } = options;
        let name = store.name;
        say(&format!(
            "repeat it with: cargo xtask reliability --store {name} --seconds {seconds} --seed {seed} \
             --lease {lease} --work {work}"
        ));
    }
    ran.map(|()| report)
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

fn heading(options: &Options, seed: u64) -> Heading {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Heading {
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        commit: options.commit.clone(),
        machine: format!("Linux {}, {cores} cores", read("/proc/sys/kernel/osrelease")),
        command: command(options, seed),
        lease: options.lease,
    }
}

fn command(options: &Options, seed: u64) -> String {
    let Options { seconds, lease, work, .. } = options;
    if options.short {
        return format!("cargo xtask reliability --short --seed {seed}");
    }
    format!("cargo xtask reliability --seconds {seconds} --seed {seed} --lease {lease} --work {work}")
}

#[expect(clippy::print_stderr, reason = "this is a command, and this is its talk")]
fn say(line: &str) {
    eprintln!("{line}");
}
