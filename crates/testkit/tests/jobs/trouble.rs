//! What goes wrong around a job and must not end it: lost cells, panics, locks lost on the way, clocks that were wrong.

use std::time::Duration;

use leasehold_core::{
    Client, Error, ErrorKind, Result, Run, Turn,
    backend::{Capabilities, CellWrite, Expect, Memory, RecordStore, Recorded},
    job::Ended,
    time::Clock,
};
use leasehold_testkit::scripted::{Fault, Script, Scripted, ScriptedRecords, Verb};
use tokio::{task::JoinSet, time::sleep};

use super::{World, every_second, seconds, state, work};

/// What a restart without a disk does to the job.
async fn lose_the_cell(store: &Recorded<Memory>) {
    let cells = store.store().list_cells("", None, 10).await.unwrap().cells;
    assert_eq!(cells.len(), 1);
    let expect = Expect::Version(cells[0].version);
    let gone = store.store().write_cell(&cells[0].name, expect, b"", Some(Duration::from_millis(1))).await;
    assert!(matches!(gone, Ok(CellWrite::Written(_))));
    sleep(Duration::from_millis(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_cell_was_lost_runs_on() {
    let mut world = World::new();
    world.join(0, every_second(&world.client()));
    sleep(Duration::from_millis(2_500)).await;
    lose_the_cell(&world.store).await;
    seconds(5).await;
    let tally = world.tally();
    assert!(tally.len() >= 6 && tally.values().all(|times| *times == 1), "{tally:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_was_lost_does_not_keep_a_job_from_being_run_once() {
    let world = World::new();
    let job = every_second(&world.client());
    let turn = async || job.run_once(async |run| Ok::<_, Error>(run.slot())).await.unwrap();
    assert!(matches!(turn().await, Turn::NotDue(_)));
    seconds(2).await;
    assert!(matches!(turn().await, Turn::Ran(_)));
    lose_the_cell(&world.store).await;
    assert!(matches!(turn().await, Turn::NotDue(_)), "it is seen for the first time");
    assert!(matches!(turn().await, Turn::NotDue(_)));
    seconds(2).await;
    assert!(matches!(turn().await, Turn::Ran(_)));
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_is_written_down_and_the_next_slot_is_run() {
    let world = World::new();
    let (job, boxed) = (every_second(&world.client()), world.client().job("boxed"));
    let boxed = boxed.schedule("* * * * * *").at_most("1h");
    let mut fleet = JoinSet::new();
    fleet
        .spawn(async move { job.run(async |run: &Run| -> Result<()> { panic!("no {}", run.slot()) }).await });
    fleet.spawn(async move { boxed.run_boxed(&|run| panic!("no {}", run.slot())).await });
    sleep(Duration::from_millis(3_500)).await;
    for name in ["job", "boxed"] {
        let state = world.client().job(name).state().await.unwrap().unwrap();
        assert_eq!((state.totals.failed, state.runs.len()), (3, 3), "{name}");
        assert_eq!(state.runs[0].ended, Ended::Failed("panicked: no 2026-01-01T00:00:01Z".to_owned()));
    }
    assert!(fleet.try_join_next().is_none(), "both go on");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_one_run_is_written_down_before_it_goes_on() {
    let world = World::new();
    let job = every_second(&world.client());
    let mut fleet = JoinSet::new();
    fleet.spawn(async move { job.run_next(async |_: &Run| -> Result<()> { panic!("oh") }).await });
    let panic = fleet.join_next().await.unwrap().unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"oh"));
    assert_eq!(state(&world.client()).await.runs[0].ended, Ended::Failed("panicked: oh".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_over_a_slot_that_is_not_run_ends_nobody() {
    let mut world = World::new();
    let script = Script::new();
    let store = ScriptedRecords::new(world.store.clone(), script.clone());
    let client = Client::builder(store).clock(world.clock.clone()).build();
    world.join(0, client.job("job").schedule("* * * * *").at_most("1h").ttl("2s"));
    seconds(1).await;
    // It looks into the book for longer than the lock lasts, and finds that it has been paused meanwhile.
    script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    script.always(Verb::ReadCell, Fault::Slow(Duration::from_secs(5)));
    seconds(65).await;
    assert_eq!(script.calls(Verb::Attempt), 1, "the lock is held");
    world.client().job("job").pause("maintenance").await.unwrap();
    seconds(20).await;
    let ended = world.fleet.try_join_next();
    assert!(ended.is_none(), "{ended:?}");
    script.heal();
    world.client().job("job").resume().await.unwrap();
    seconds(60).await;
    assert_eq!(world.tally().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_slot_is_given_out_under_a_lock_that_is_lost() {
    let mut world = World::new();
    let script = Script::new();
    let store = ScriptedRecords::new(world.store.clone(), script.clone());
    let client = Client::builder(store).clock(world.clock.clone()).build();
    world.join(1, client.job("job").schedule("* * * * *").at_most("1h").ttl("2s"));
    seconds(1).await;
    let before = state(&world.client()).await.last;
    // Whoever has the lock looks into the book for longer than the lock lasts.
    script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    script.always(Verb::ReadCell, Fault::Slow(Duration::from_secs(5)));
    seconds(100).await;
    let during = state(&world.client()).await;
    assert_eq!((during.last, during.runs.len()), (before, 0), "{during:?}");
    script.heal();
    seconds(15).await;
    assert_eq!(state(&world.client()).await.totals.done, 1);
}

#[tokio::test(start_paused = true)]
async fn jitter_may_be_longer_than_a_minute() {
    let world = World::new();
    let job = world.client().job("job").schedule("0 * * * *").jitter("30m").at_most("1h");
    let mut late = Vec::new();
    for _ in 0..10 {
        let slot = job.run_next(async |run| Ok::<_, Error>(run.slot())).await.unwrap();
        late.push(world.clock.wall().checked_sub(slot.since_1970()).unwrap());
    }
    assert!(late.iter().all(|late| *late < Duration::from_secs(31 * 60)), "{late:?}");
    assert!(late.iter().any(|late| *late > Duration::from_secs(62)), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_while_it_is_looked_at_has_not_died() {
    let world = World::new();
    let job = world.client().job("job").schedule("* * * * *").at_most("1h");
    let mut fleet = JoinSet::new();
    fleet.spawn(async move { job.run_next(async |_| work(1).await).await });
    sleep(Duration::from_millis(60_500)).await;
    let script = Script::new();
    script.always(Verb::Inspect, Fault::Slow(Duration::from_secs(4)));
    let slow = Client::builder(Scripted::new(world.store.clone(), script)).clock(world.clock.clone()).build();
    let seen = state(&slow).await;
    assert_eq!((seen.totals.done, seen.totals.died), (1, 0), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_a_clock_carried_ahead_goes_on_from_now_when_told_to() {
    let mut world = World::new();
    let fast = Clock::test();
    fast.suspend(Duration::from_secs(86_400));
    let clockless = |clock: &Clock| {
        let store = Scripted::new(world.store.clone(), Script::new());
        let store = store.with_capabilities(Capabilities::default());
        Client::builder(store).clock(clock.clone()).build()
    };
    let (wrong, right) = (clockless(&fast), clockless(&world.clock));
    every_second(&wrong).run_next(async |_| work(0).await).await.unwrap();
    world.join(0, every_second(&right));
    seconds(10).await;
    assert!(world.tally().is_empty());
    assert!(state(&right).await.ahead > Some(Duration::from_secs(80_000)));
    assert!(right.job("job").resume_from_now().await.unwrap());
    assert!(!right.job("job").resume_from_now().await.unwrap());
    assert_eq!(state(&right).await.ahead, None);
    seconds(70).await;
    assert!(!world.tally().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_forgotten_is_new_to_whoever_runs_it() {
    let mut world = World::new();
    let operator = world.client();
    assert!(!operator.job("job").forget().await.unwrap(), "there is none");
    operator.job("job").pause(&"x".repeat(1000)).await.unwrap();
    assert_eq!(state(&operator).await.paused.unwrap().why.len(), 500);
    assert!(operator.job("job").forget().await.unwrap());
    sleep(Duration::from_millis(10)).await;
    assert!(operator.job("job").state().await.unwrap().is_none());
    world.join(0, every_second(&world.client()));
    seconds(3).await;
    assert!(operator.job("job").forget().await.unwrap());
    seconds(3).await;
    let state = state(&operator).await;
    assert!(state.totals.done >= 1 && state.totals.done <= 3, "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_finishes_on_loss_is_not_begun_after_it() {
    let mut world = World::new();
    let script = Script::new();
    let store = ScriptedRecords::new(world.store.clone(), script.clone());
    let client = Client::builder(store).clock(world.clock.clone()).build();
    world.join(0, client.job("job").schedule("* * * * *").at_most("1h").ttl("2s").finish_on_loss());
    seconds(1).await;
    // The slot is ours, and to hear so takes longer than the lock lasts.
    script.always(Verb::Renew, Fault::Err(ErrorKind::Unavailable));
    script.next(Verb::WriteCell, [Fault::Slow(Duration::from_secs(5))]);
    seconds(80).await;
    assert!(world.tally().is_empty());
    assert_eq!(state(&world.client()).await.totals.lost, 1);
}
