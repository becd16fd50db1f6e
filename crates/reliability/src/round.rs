//! One round: everything is started, worked on under faults for so many seconds, healed, drained, stopped, and judged.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use leasehold_testkit::history::{
    Belief, Event, Hit, Verdict, Window, beliefs, fence_faults, lost_updates, notices, order, outages,
    overlaps, read_file, stuck,
};

use crate::{
    audit,
    clock::{now, rest},
    dice::Dice,
    fleet::Fleet,
    nemesis::{Diary, Weather, harass, torment},
    options::Manner,
    packs::Store,
    register::Register,
    report::Report,
    worker::Arguments,
};

/// Work without faults at the beginning.
const CALM: Duration = Duration::from_secs(1);

/// Work without faults at the end, beyond two leases.
const DRAIN: Duration = Duration::from_secs(2);

/// A name that nobody got for so long after that is stuck.
const RECOVERY: Duration = Duration::from_secs(30);

/// How long to search for an order of what happened, in all.
const SEARCH: Duration = Duration::from_secs(15);

/// What a round is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the workers' programs are.
    pub programs: PathBuf,
    /// Where its files go.
    pub folder: PathBuf,
    /// Seconds under faults.
    pub seconds: u64,
    /// The seed of everything.
    pub seed: u64,
    /// How it is gone about.
    pub manner: Manner,
}

/// Runs one round and adds it to the report.
///
/// # Errors
/// If the run could not be carried through: that is no verdict on the store. What its workers had done by then is judged
/// all the same, but for what is only known of a round that was healed: what is left, and what was not had again.
pub fn run(store: &Store, plan: &Plan, report: &mut Report) -> io::Result<()> {
    let mut pack = (store.start)().map_err(io::Error::other)?;
    report.version = pack.version();
    let register = Register::start(&plan.folder)?;
    let template = template(store, plan, &register, pack.url());
    let urls = (0..store.crew.workers).map(|place| pack.url_for(place)).collect();
    let mut fleet = Fleet::start(plan.programs.join(store.crew.program), template, urls)?;
    let mut dice = Dice::of(plan.seed);
    rest(CALM);
    let (diary, [of_store, of_workers]) = (Diary::default(), weather(plan));
    let carried = std::thread::scope(|scope| {
        let (store_dice, worker_dice) = (dice.fork(), dice.fork());
        let tormented = scope.spawn(|| torment(&mut *pack, of_store, store_dice, &diary));
        let harassed = harass(&mut fleet, store.crew.hazards, of_workers, worker_dice, &diary);
        let tormented = tormented.join().map_err(|_| io::Error::other("the nemesis panicked"))?;
        harassed.and(tormented)
    });
    let healed = now();
    let windows = diary.windows();
    let over = if carried.is_ok() { Some(drain(&fleet, plan, &windows, healed)?) } else { None };
    let endings = fleet.stop()?;
    register.close();
    if carried.is_ok() {
        rest(plan.manner.lease + Duration::from_secs(1));
        let (leaks, claim) = audit::leaks(&*pack, &endings, &killed(&fleet, &windows));
        report.leaks.extend(leaks);
        report.claim = claim;
        report.seeds.push(plan.seed);
    }
    report.leaks.extend(fleet.panics());
    let errors = endings.iter().filter_map(|ending| ending.words.as_ref()).flatten();
    for (word, count) in errors.filter(|(word, _)| word.starts_with("error ") || word == "shutdown") {
        *report.errors.entry(word.trim_start_matches("error ").to_owned()).or_default() += count;
    }
    write_down(&plan.folder, &windows)?;
    let history = histories(&fleet, &plan.folder)?;
    if let Some(over) = over {
        measure(&history, &windows, [healed, over], plan.manner.lease, report);
    }
    judge(&history, &windows, report);
    report.seconds += plan.seconds;
    carried
}

/// Lets workers go on without faults until every name that somebody waits for was had again, or until it took too long;
/// says when that was. How long it takes is the machine's business as well: it may be very busy.
fn drain(fleet: &Fleet, plan: &Plan, windows: &[Window], healed: u64) -> io::Result<u64> {
    let lease = plan.manner.lease;
    rest(lease * 2 + DRAIN);
    let end = Instant::now() + RECOVERY;
    loop {
        let over = now();
        let stuck = stuck(&histories(fleet, &plan.folder)?, windows, [healed, over], lease.as_nanos() as u64);
        if stuck.is_empty() || Instant::now() > end {
            return Ok(over);
        }
        rest(Duration::from_secs(1));
    }
}

/// Of the store, and of the workers.
fn weather(plan: &Plan) -> [Weather; 2] {
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let Manner { lease, calm, .. } = plan.manner;
    calm.map(|calm| Weather { lease, calm, end })
}

fn template(store: &Store, plan: &Plan, register: &Register, url: String) -> Arguments {
    let (crew, manner) = (&store.crew, plan.manner);
    Arguments {
        url,
        register: register.socket().to_owned(),
        folder: plan.folder.clone(),
        process: 0,
        kinds: crew.kinds.to_vec(),
        tasks: manner.tasks,
        names: manner.names,
        work: manner.work.as_millis() as u64,
        long: crew.long,
        ttl: manner.lease.as_millis() as u64,
        wait: manner.lease.as_millis() as u64 * 5,
        // Long after the end: it is only for a worker that nobody stops.
        seconds: plan.seconds + 300,
        seed: plan.seed,
    }
}

fn write_down(folder: &Path, windows: &[Window]) -> io::Result<()> {
    let lines: Vec<String> = windows.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("nemesis.txt"), lines.join("\n"))
}

fn histories(fleet: &Fleet, folder: &Path) -> io::Result<Vec<Event>> {
    let mut history = read_file(&folder.join("register.history"))?;
    for process in fleet.processes() {
        let file = fleet.arguments(process).history();
        // One that was killed before it began has none.
        if file.exists() {
            history.extend(read_file(&file)?);
        }
    }
    Ok(history)
}

/// How long locks could not be had, and whether all could be had again.
fn measure(
    history: &[Event],
    windows: &[Window],
    [healed, over]: [u64; 2],
    lease: Duration,
    report: &mut Report,
) {
    report.measure(outages(history, windows, over));
    let stuck = stuck(history, windows, [healed, over], lease.as_nanos() as u64);
    report.revive(stuck, &beliefs(history), healed);
}

fn judge(history: &[Event], windows: &[Window], report: &mut Report) {
    report.count(history);
    let mut beliefs = beliefs(history);
    end_with_the_killed(&mut beliefs, windows);
    report.judge(&Verdict {
        grants: beliefs.len(),
        overlaps: overlaps(&beliefs),
        fences: fence_faults(&beliefs, history),
        updates: lost_updates(history),
    });
    report.order(order(&beliefs, SEARCH));
    report.notice(notices(history, windows));
}

/// By which ids the store knows those who were killed.
fn killed(fleet: &Fleet, windows: &[Window]) -> Vec<String> {
    let dead = windows.iter().filter_map(|window| match window.hit {
        Hit::Killed(process) => std::fs::read_to_string(fleet.arguments(process).client()).ok(),
        _ => None,
    });
    dead.collect()
}

/// The dead believe nothing: a lock that is free as soon as its holder is killed is no overlap.
fn end_with_the_killed(beliefs: &mut [Belief], windows: &[Window]) {
    let killed = |window: &Window| match window.hit {
        Hit::Killed(process) => Some((process, window.from)),
        _ => None,
    };
    let deaths: HashMap<u32, u64> = windows.iter().filter_map(killed).collect();
    for belief in beliefs {
        let death = deaths.get(&belief.process).copied().unwrap_or(u64::MAX);
        belief.until = belief.until.min(death);
    }
}
