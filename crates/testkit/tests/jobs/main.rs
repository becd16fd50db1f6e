//! The rules of jobs, in time that only the test moves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod closing;
mod trouble;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{
    CatchUp, ClaimId, Client, Error, ErrorKind, Job, JobState, Key, Result, Run, Slot,
    backend::{
        Capabilities, Cell, CellPage, CellWrite, Expect, LockPage, LockState, Memory, RecordStore, Recorded,
        StoreInfo,
        record::{Answer, Step},
    },
    job::Ended,
    time::Clock,
};
use leasehold_testkit::scripted::{Fault, Script, Scripted, ScriptedRecords, Verb};
use tokio::{task::JoinSet, time::sleep};

/// Who ran what.
type Log = Arc<Mutex<Vec<(Slot, usize)>>>;

struct World {
    clock: Clock,
    store: Recorded<Memory>,
    log: Log,
    fleet: JoinSet<Result<()>>,
}

impl World {
    fn new() -> Self {
        let clock = Clock::test();
        let store = Memory::with_clock(clock.clone());
        Self { clock, store, log: Log::default(), fleet: JoinSet::new() }
    }

    fn client(&self) -> Client {
        Client::builder(self.store.clone()).clock(self.clock.clone()).build()
    }

    /// One more of the fleet, that takes no time to run a slot.
    fn join(&mut self, number: usize, job: Job) {
        let log = self.log.clone();
        self.fleet.spawn(async move {
            job.run(async move |run: &Run| {
                log.lock().unwrap().push((run.slot(), number));
                run.check()
            })
            .await
        });
    }

    /// How often each slot was run.
    fn tally(&self) -> BTreeMap<Slot, usize> {
        let mut tally = BTreeMap::new();
        for (slot, _) in &*self.log.lock().unwrap() {
            *tally.entry(*slot).or_default() += 1;
        }
        tally
    }
}

fn every_second(client: &Client) -> Job {
    client.job("job").schedule("* * * * * *").at_most("1h")
}

async fn state(client: &Client) -> JobState {
    client.job("job").state().await.unwrap().unwrap()
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

/// Work that takes so many.
async fn work(count: u64) -> Result<()> {
    seconds(count).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn three_of_a_fleet_run_every_slot_once() {
    let mut world = World::new();
    for number in 0..3 {
        world.join(number, every_second(&world.client()));
    }
    sleep(Duration::from_millis(60_500)).await;
    let tally = world.tally();
    assert_eq!((tally.len(), tally.values().max()), (60, Some(&1)));
    let state = state(&world.client()).await;
    assert_eq!((state.totals.done, state.totals.missed), (60, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_without_a_clock_runs_no_slot_twice_though_clocks_differ() {
    let mut world = World::new();
    let fast = Clock::test();
    fast.suspend(Duration::from_secs(600));
    let clocks = [world.clock.clone(), fast, world.clock.clone()];
    for (number, clock) in clocks.into_iter().enumerate() {
        let can = Capabilities::default();
        assert!(!can.clock);
        let store = Scripted::new(world.store.clone(), Script::new()).with_capabilities(can);
        let client = Client::builder(store).clock(clock).build();
        world.join(number, every_second(&client));
    }
    sleep(Duration::from_millis(30_500)).await;
    let tally = world.tally();
    assert!(tally.len() >= 30 && tally.values().all(|times| *times == 1), "{tally:?}");
    let state = state(&world.client()).await;
    let last_of_the_fast = world.clock.wall() + Duration::from_secs(600);
    assert_eq!(state.last.unwrap().as_secs(), last_of_the_fast.as_secs());
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_written_down_and_the_next_slot_is_run() {
    let world = World::new();
    let job = every_second(&world.client());
    let mut fleet = JoinSet::new();
    fleet.spawn(async move { job.run(async |run: &Run| Err::<(), _>(format!("no {}", run.slot()))).await });
    sleep(Duration::from_millis(3_500)).await;
    let state = state(&world.client()).await;
    assert_eq!((state.totals.failed, state.runs.len()), (3, 3));
    assert!(matches!(&state.runs[0].ended, Ended::Failed(why) if why == "no 2026-01-01T00:00:01Z"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_dropped_and_others_go_on() {
    let world = World::new();
    let job = world.client().job("job").schedule("* * * * *").at_most("10s");
    let next = job.run_next(async |_| std::future::pending::<Result<()>>().await).await.unwrap_err();
    assert_eq!(next.kind(), ErrorKind::Lost);
    let state = state(&world.client()).await;
    assert!(matches!(&state.runs[0].ended, Ended::Lost(why) if why.contains("max_hold")), "{state:?}");
    assert!(state.runs[0].took.unwrap() >= Duration::from_secs(9));
    assert_eq!(world.clock.wall().as_secs() % 60, 9, "it is over before its time is");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_dies_takes_its_slot_with_it() {
    let mut world = World::new();
    let doomed = every_second(&world.client()).ttl("5s");
    let mut dying = JoinSet::new();
    dying.spawn(async move { doomed.run(async |_: &Run| std::future::pending::<Result<()>>().await).await });
    sleep(Duration::from_millis(1_500)).await;
    world.join(1, every_second(&world.client()));
    seconds(1).await;
    assert!(state(&world.client()).await.running.is_some());
    dying.shutdown().await;
    seconds(2).await;
    let state = state(&world.client()).await;
    assert_eq!((state.totals.died, state.runs[0].ended.clone()), (1, Ended::Died));
    let first = state.runs[0].slot;
    assert!(!world.tally().contains_key(&first), "it is not run again");
    assert!(state.totals.done >= 1);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_could_run_is_missed_and_the_latest_is_made_up_for() {
    let mut world = World::new();
    let job = world.client().job("job").schedule("* * * * *").at_most("1h");
    // It takes more than two minutes.
    job.run_next(async |_| work(150).await).await.unwrap();
    world.join(1, job);
    seconds(1).await;
    let state = state(&world.client()).await;
    assert_eq!((state.totals.done, state.totals.missed), (2, 1));
    let ended: Vec<&Ended> = state.runs.iter().map(|run| &run.ended).collect();
    let missed = Slot::from_secs(state.runs[0].slot.as_secs() + 60);
    assert_eq!(ended, [&Ended::Done, &Ended::Missed { from: missed, count: 1 }, &Ended::Done]);
}

#[tokio::test(start_paused = true)]
async fn or_all_of_it_or_nothing() {
    for (catch_up, expected) in [(CatchUp::All, (3, 0)), (CatchUp::Skip, (1, 0))] {
        let mut world = World::new();
        let job = world.client().job("job").schedule("* * * * *").at_most("1h").catch_up(catch_up);
        job.run_next(async |_| work(155).await).await.unwrap();
        world.join(1, job);
        seconds(1).await;
        let state = state(&world.client()).await;
        assert_eq!((state.totals.done, state.totals.missed), expected, "{catch_up:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_kept_to_and_not_made_up_for() {
    let mut world = World::new();
    let operator = world.client();
    world.join(0, every_second(&world.client()));
    sleep(Duration::from_millis(2_500)).await;
    operator.job("job").pause("maintenance").await.unwrap();
    seconds(10).await;
    assert_eq!(world.tally().len(), 2);
    operator.job("job").resume().await.unwrap();
    seconds(2).await;
    let state = state(&operator).await;
    assert_eq!((state.totals.done, state.totals.missed), (4, 10));
}

#[tokio::test(start_paused = true)]
async fn a_run_counts_for_as_long_as_it_was_told_to() {
    let mut world = World::new();
    for number in 0..2 {
        world.join(number, every_second(&world.client()).at_least("5s"));
    }
    sleep(Duration::from_millis(20_500)).await;
    let slots: Vec<u64> = world.tally().into_keys().map(Slot::as_secs).collect();
    assert!(slots.len() >= 4 && slots.windows(2).all(|pair| pair[1] - pair[0] >= 5), "{slots:?}");
}

#[tokio::test(start_paused = true)]
async fn jitter_moves_the_beginning_and_not_the_slot() {
    let world = World::new();
    let job = world.client().job("job").schedule("* * * * *").jitter("30s").at_most("1h");
    let mut late = Vec::new();
    for _ in 0..10 {
        let slot = job.run_next(async |run| Ok::<_, Error>(run.slot())).await.unwrap();
        assert_eq!(slot.as_secs() % 60, 0);
        late.push(world.clock.wall().checked_sub(slot.since_1970()).unwrap());
    }
    assert!(late.iter().all(|late| *late < Duration::from_secs(31)), "{late:?}");
    assert!(late.iter().any(|late| *late > Duration::from_millis(100)), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_borne_with() {
    let mut world = World::new();
    let script = Script::new();
    let store = ScriptedRecords::new(world.store.clone(), script.clone());
    let client = Client::builder(store).clock(world.clock.clone()).build();
    world.join(0, every_second(&client));
    sleep(Duration::from_millis(2_500)).await;
    for verb in [Verb::Clock, Verb::ReadCell, Verb::WriteCell, Verb::Attempt] {
        script.always(verb, Fault::Err(ErrorKind::Unavailable));
        seconds(5).await;
        script.heal();
        seconds(5).await;
    }
    let tally = world.tally();
    assert!(tally.len() >= 20 && tally.values().all(|times| *times == 1), "{tally:?}");
    let state = state(&world.client()).await;
    let slots = state.last.unwrap().as_secs() - tally.keys().next().unwrap().as_secs() + 1;
    let totals = state.totals;
    assert_eq!(totals.done + totals.died + totals.missed, slots, "{totals:?}");
}

#[tokio::test(start_paused = true)]
async fn writes_that_are_lost_or_late_run_no_slot_twice() {
    for seed in 0..20 {
        let mut world = World::new();
        for number in 0..3 {
            let store = ScriptedRecords::new(world.store.clone(), Script::seeded(seed * 3 + number as u64));
            let client = Client::builder(store).clock(world.clock.clone()).build();
            world.join(number, every_second(&client).ttl("2s"));
        }
        sleep(Duration::from_millis(30_500)).await;
        let tally = world.tally();
        assert!(tally.values().all(|times| *times == 1), "seed {seed}: {tally:?}");
        assert!(!tally.is_empty(), "seed {seed}");
        let ended = world.fleet.try_join_next();
        assert!(ended.is_none(), "seed {seed}: {ended:?}");
    }
}

/// Locks of its own and cells of everybody: a store whose locks are granted to all.
#[derive(Debug)]
struct Torn {
    locks: Recorded<Memory>,
    cells: Recorded<Memory>,
}

impl RecordStore for Torn {
    type Bell = <Memory as RecordStore>::Bell;

    fn info(&self) -> &StoreInfo {
        self.locks.store().info()
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        self.locks.store().apply(key, step).await
    }

    fn bell(&self, key: &Key, id: ClaimId) -> Self::Bell {
        self.locks.store().bell(key, id)
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        self.locks.store().inspect(key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.locks.store().list(prefix, cursor, limit).await
    }

    async fn wall_clock(&self) -> Result<Option<Duration>> {
        self.cells.store().wall_clock().await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        tokio::task::yield_now().await;
        self.cells.store().read_cell(name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        tokio::task::yield_now().await;
        self.cells.store().write_cell(name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        self.cells.store().list_cells(prefix, cursor, limit).await
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_run_once_though_the_lock_is_granted_to_all() {
    let mut world = World::new();
    for number in 0..3 {
        let torn = Torn { locks: Memory::with_clock(world.clock.clone()), cells: world.store.clone() };
        let client = Client::builder(Recorded::new(torn)).clock(world.clock.clone()).build();
        world.join(number, every_second(&client));
    }
    sleep(Duration::from_millis(30_500)).await;
    let tally = world.tally();
    assert_eq!((tally.len(), tally.values().max()), (30, Some(&1)));
}

#[tokio::test(start_paused = true)]
async fn a_job_ends_with_its_client() {
    let mut world = World::new();
    let client = world.client();
    world.join(0, every_second(&client));
    sleep(Duration::from_millis(1_500)).await;
    client.shutdown("1s").await.unwrap();
    world.fleet.join_next().await.unwrap().unwrap().unwrap();
    let refused = every_second(&client).run(async |_: &Run| Ok::<_, Error>(())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn jobs_without_sense_are_refused_with_what_to_write() {
    let client = World::new().client();
    let whole = client.job("job").schedule("* * * * *").at_most("1h");
    for (job, said) in [
        (client.job("job").schedule("* * * * *"), "at_most"),
        (client.job("job").at_most("1h"), "has no schedule"),
        (client.job("job").at_most("1h").zone("UTC"), "without a schedule"),
        (whole.clone().schedule("* * *"), "has 3 fields"),
        (whole.clone().zone("Berlin"), "no time zone"),
        (whole.clone().at_least("long"), "at_least: "),
        (whole.clone().jitter("much"), "jitter: "),
        (whole.clone().at_most("ever"), "at_most: "),
        (whole.clone().at_most("1ms"), "at_most: "),
        (whole.clone().ttl("soon"), "ttl: "),
        (whole.clone().label(&"long".repeat(1000)), "label"),
    ] {
        let error = job.run(async |_: &Run| Ok::<_, Error>(())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(client.job("job").state().await.unwrap().is_none(), "nothing of it was written");
}

#[tokio::test(start_paused = true)]
async fn only_a_store_without_a_clock_says_so() {
    let store = World::new().store;
    let clockless = Scripted::new(store.clone(), Script::new()).with_capabilities(Capabilities::default());
    let has_note = async |client: Client| {
        client.diagnose().await.unwrap().iter().any(|finding| finding.topic == "no-clock")
    };
    assert!(has_note(Client::new(clockless)).await);
    assert!(!has_note(Client::new(store)).await);
}
