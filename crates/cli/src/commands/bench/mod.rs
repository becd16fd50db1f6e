//! `bench`: how fast locks are on a store of the user's own, and whether they are right.
//!
//! It is load on a store that others may use: so it says so before it begins, refuses a store where others hold locks
//! unless told otherwise, and keeps to names of its own, the same in every run. Two runs at a time would measure each
//! other, so a lock keeps them apart. It measures one store; it compares with nothing.

mod load;
mod meter;
mod outcome;
mod page;
mod plot;
mod progress;
mod scenario;
mod stage;
mod witness;

use std::{
    num::NonZeroUsize,
    path::PathBuf,
    time::{Duration, Instant},
};

use leasehold::{Client, backend::LockPage};
use nix::sys::resource::{UsageWho, getrusage};

use self::{
    outcome::{Course, Outcome, Report},
    progress::Progress,
    scenario::Scenario,
    stage::{NAME, Stage, Terms},
};
use super::close;
use crate::{
    args::{Output, Talk, duration},
    config::Settings,
    exit::{Exit, Failure},
    print::{self, Volume},
    table::{Column, Table},
};

/// Names looked at to see whether a store is in use.
const LOOK: usize = 100;

const COLUMNS: [Column; 10] = [
    Column::needed("SCENARIO"),
    Column::needed("TASKS"),
    Column::spare("OPERATIONS"),
    Column::needed("PER SECOND"),
    Column::needed("P50"),
    Column::spare("P90"),
    Column::needed("P99"),
    Column::spare("SLOWEST"),
    Column::needed("FAILED"),
    Column::needed("EXACT"),
];

/// Measure the store: how fast are locks on it, and are they right?
///
/// Plays scenarios, each for a few seconds, and reports rates and latencies. Where several tasks share something it is
/// also checked that the lock did its work: a counter that comes out wrong, or two inside where one may be, ends with
/// exit code 2. This is load on the store, which slows down everybody else who uses it. All names begin with
/// `leasehold-bench`, and every lock is released in the end; what a store keeps of a name for a while, such as a fence on
/// Redis for a day, stays for these.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// What to play [default: all but soak]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,

    /// How many tasks; for `held`, how many locks [default: as the scenario has it, 64 to 1000]
    #[arg(long, value_name = "N")]
    tasks: Option<NonZeroUsize>,

    /// How long each scenario goes on [default: 3, soak 60]
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,

    /// How many clients the tasks are dealt out among, each with connections of its own
    #[arg(long, value_name = "N", default_value = "1")]
    clients: NonZeroUsize,

    /// The lease; for `held` it decides how often locks are renewed [default: 30s]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    ttl: Option<Duration>,

    /// Let a lock pass between so many tasks of a client before the store has it back
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    cohort: u32,

    /// Use the plainest locks the store has: on Redis, one value set if it is absent
    #[arg(long)]
    plain: bool,

    /// Write a page with plots as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Do it though others hold locks on this store
    #[arg(long)]
    yes: bool,
}

const AFTER: &str = "\
Exit codes:
    0  all went well
    1  some operations failed, or locks were lost
    2  a result was wrong: locks on this store do not exclude
   64  the store is in use by others (--yes)
   69  the store cannot be reached
   75  another run of this is under way

Examples:
  leasehold --store redis://cache:6379 bench
  leasehold bench counter --tasks 1000 --cohort 64
  leasehold bench held --tasks 100000 --ttl 9s --seconds 10
  leasehold bench soak --seconds 3600 --html soak.html
  leasehold bench -o json | jq '.scenarios[] | {scenario, per_second}'";

/// Plays the scenarios and reports. On several threads, as the programs do that use locks.
pub(crate) fn run(args: &Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal("cannot start", error))?;
    let ended = runtime.block_on(measure(args, settings, talk));
    runtime.shutdown_background();
    ended
}

async fn measure(args: &Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let mut clients = vec![settings.connect().await?];
    let measured = tokio::select! {
        measured = prepared(args, settings, talk.volume(), &mut clients) => measured,
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Signal(2), "interrupted; no result")),
    };
    for client in &clients {
        close(client).await;
    }
    let report = measured?;
    tell(&report, talk.output)?;
    if let Some(path) = &args.html {
        let written = std::fs::write(path, page::render(&report));
        written.map_err(|error| Failure::internal(&format!("cannot write {}", path.display()), error))?;
    }
    Ok(match (report.is_exact(), report.has_failures()) {
        (false, _) => Exit::Endangered,
        (true, true) => Exit::Warned,
        (true, false) => Exit::Success,
    })
}

/// Makes sure that the store may be loaded, and plays.
async fn prepared(
    args: &Args,
    settings: &Settings,
    volume: Volume,
    clients: &mut Vec<Client>,
) -> Result<Report, Failure> {
    let client = clients[0].clone();
    let Some(alone) = client.lock(NAME).label("bench").try_acquire().await? else {
        let message = "another run of bench is under way on this store; wait for its end";
        return Err(Failure::new(Exit::Busy(Exit::BUSY), message));
    };
    if !args.yes {
        refuse_if_used(&client).await?;
    }
    // A second client of a store in memory would be another store.
    let more = if client.info().scheme == "memory" { 1 } else { needed(args) };
    while clients.len() < more {
        clients.push(settings.connect().await?);
    }
    let address = &client.info().address;
    print::note(volume, Volume::Normal, &format!("loads {address} with locks called {NAME}:…"));
    let report = play_all(args, volume, clients).await;
    alone.release().await?;
    Ok(report)
}

/// Handing on takes two clients.
fn needed(args: &Args) -> usize {
    let hands_on = args.scenarios.is_empty() || args.scenarios.contains(&Scenario::Handoff);
    args.clients.get().max(if hands_on { 2 } else { 1 })
}

async fn refuse_if_used(client: &Client) -> Result<(), Failure> {
    let LockPage { locks, .. } = client.list("", None, LOOK).await?;
    let used = |name: &str| !name.starts_with(NAME);
    let mut others = locks.iter().filter(|lock| used(&lock.name) && !lock.holders.is_empty());
    match others.next() {
        None => Ok(()),
        Some(lock) => Err(Failure::usage(format!(
            "others hold locks on this store, such as {:?}, and a benchmark would slow them down; give --yes to do it \
             all the same",
            lock.name
        ))),
    }
}

async fn play_all(args: &Args, volume: Volume, clients: &[Client]) -> Report {
    let scenarios = if args.scenarios.is_empty() { Scenario::usual() } else { args.scenarios.clone() };
    let terms = Terms { ttl: args.ttl, cohort: args.cohort, plain: args.plain };
    let mut report = Report::new(clients[0].info(), args.clients.get().min(clients.len()));
    for scenario in scenarios {
        let used = if scenario == Scenario::Handoff { clients.len().min(2) } else { report.clients };
        let tasks = scenario.sized(args.tasks.map(NonZeroUsize::get));
        let time = args.seconds.unwrap_or_else(|| scenario.time());
        let stage = Stage::new(&clients[..used], tasks, time, terms);
        let mut progress = Progress::new(volume);
        let (begun, cpu) = (Instant::now(), processor());
        tokio::select! {
            () = load::play(scenario, &stage) => {}
            () = progress.watch(scenario, &stage.meter, time) => {}
        }
        progress.clear();
        let timeline = std::mem::take(&mut progress.timeline);
        let course = Course { took: begun.elapsed(), cpu: processor().saturating_sub(cpu), timeline };
        report.scenarios.push(Outcome::new(scenario, &stage, course));
    }
    report
}

/// Processor time this process has used.
fn processor() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_SELF).map(|usage| [usage.user_time(), usage.system_time()]);
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    let total: i64 = used.map_or(0, |times| times.into_iter().map(micros).sum());
    Duration::from_micros(total.unsigned_abs())
}

fn tell(report: &Report, output: Output) -> Result<(), Failure> {
    if output == Output::Json {
        let json = serde_json::to_string(report);
        let json = json.map_err(|error| Failure::internal("cannot write JSON", error))?;
        return print::json(&(json + "\n"));
    }
    let mut table = Table::new(&COLUMNS);
    report.scenarios.iter().for_each(|outcome| table.push(&row(outcome)));
    table.print()?;
    for outcome in &report.scenarios {
        for trouble in [&outcome.wrong, &outcome.error].into_iter().flatten() {
            print::warn(&format!("{}: {trouble}", outcome.scenario.name()));
        }
    }
    Ok(())
}

fn row(outcome: &Outcome) -> [String; COLUMNS.len()] {
    let latency = &outcome.latency;
    let [p50, p90, p99, max] = [latency.p50, latency.p90, latency.p99, latency.max].map(plot::duration);
    [
        outcome.scenario.name().to_owned(),
        outcome.tasks.to_string(),
        outcome.operations.to_string(),
        format!("{:.0}", outcome.per_second),
        p50,
        p90,
        p99,
        max,
        outcome.failed.to_string(),
        if outcome.exact { "yes" } else { "NO" }.to_owned(),
    ]
}

/// A number of seconds that makes sense.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.01..=1e6).contains(number));
    number
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "not a number of seconds; write it like 10 or 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_some() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "NaN", "inf", "3s", "1e9"] {
            assert!(seconds(wrong).is_err(), "{wrong:?}");
        }
    }
}
