//! Jobs: what one of many runs, once for each slot.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{Client, Error, ErrorKind, Job, Run, Slot, Turn, job::Ended, time::Clock};
use tokio::{sync::oneshot, task::JoinSet};

use super::{
    Fixture,
    probe::{eventually, joined, settled},
};
use crate::scripted::{Fault, Script, Verb};

/// How often each slot was run.
type Tally = Arc<Mutex<BTreeMap<Slot, u32>>>;

/// A job that comes every second, and may take as long as it likes.
fn every_second(client: &Client, name: &str) -> Job {
    client.job(name).schedule("* * * * * *").at_most("1h")
}

/// Whether the store says that it has a clock or not, that is so; and the clock is about right.
pub(super) async fn the_clock_is_told_by_those_who_have_one(fixture: Fixture) {
    let (one, other) = (fixture.backend(&Script::new()).await, fixture.backend(&Script::new()).await);
    let has_clock = one.info().capabilities.clock;
    let (first, second) = (one.wall_clock().await.unwrap(), other.wall_clock().await.unwrap());
    assert_eq!((first.is_some(), second.is_some()), (has_clock, has_clock));
    if let (Some(first), Some(second)) = (first, second) {
        assert!(first <= second, "sessions are told the same clock: {first:?}, then {second:?}");
        let ours = if fixture.is_virtual() { fixture.time().wall() } else { Clock::boot().wall() };
        let day = Duration::from_secs(24 * 3600);
        assert!(ours.abs_diff(first) < day, "{first:?} is not the time since 1970");
    }
}

/// Of many who would run a job at one moment, one does, and what is known of it is the same to all.
pub(super) async fn one_of_many_runs_a_job(fixture: Fixture) {
    let (name, mut fleet) = (fixture.name("one"), JoinSet::new());
    for _ in 0..4 {
        let job = fixture.client().await.job(&name).at_most("1h").at_least("1h");
        fleet.spawn(async move { job.run_once(async |run| Ok::<_, Error>(run.fence())).await.unwrap() });
    }
    let ran: Vec<u64> = joined(fleet)
        .await
        .into_iter()
        .filter_map(|turn| match turn {
            Turn::Ran(fence) => Some(fence),
            Turn::Busy(_) | Turn::Resting(_) => None,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ran.len(), 1);
    let client = fixture.client().await;
    let state = client.job(&name).state().await.unwrap().unwrap();
    assert_eq!((state.totals.done, state.runs.len(), state.running), (1, 1, None));
    let start = state.runs[0].start.as_ref().unwrap();
    assert_eq!((start.fence, &state.runs[0].ended), (ran[0], &Ended::Done));
    assert!(state.rests_until.is_some());
    let listed = client.jobs(&name, None, 10).await.unwrap();
    assert_eq!(listed.jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), [name.as_str()]);
    settled(&client, &name).await;
}

/// Whoever of a fleet is first runs a slot, and nobody runs it again.
pub(super) async fn every_slot_falls_to_one(fixture: Fixture) {
    let (name, tally, mut fleet) = (fixture.name("slots"), Tally::default(), JoinSet::new());
    let clients = [fixture.client().await, fixture.client().await, fixture.client().await];
    for client in &clients {
        let (job, tally) = (every_second(client, &name), tally.clone());
        fleet.spawn(async move {
            job.run(async move |run: &Run| {
                *tally.lock().unwrap().entry(run.slot()).or_default() += 1;
                run.check()
            })
            .await
        });
    }
    let job = clients[0].job(&name);
    eventually(async || job.state().await.unwrap().is_some_and(|state| state.totals.done >= 3)).await;
    for client in &clients {
        client.shutdown("10s").await.unwrap();
    }
    joined(fleet).await.into_iter().for_each(|ended| ended.unwrap());
    let tally = tally.lock().unwrap().clone();
    assert!(tally.len() >= 3 && tally.values().all(|times| *times == 1), "{tally:?}");
}

/// A paused job is run by nobody; resumed it goes on, and does not make up for the pause.
pub(super) async fn a_paused_job_is_not_run(fixture: Fixture) {
    let (client, operator, name) = (fixture.client().await, fixture.client().await, fixture.name("paused"));
    assert!(operator.job(&name).state().await.unwrap().is_none());
    assert!(operator.job(&name).pause("the disk is full").await.unwrap().is_none());
    let job = client.job(&name).at_most("1h");
    let turn = job.run_once(async |_| Ok::<_, Error>(())).await.unwrap();
    assert!(matches!(turn, Turn::Paused(paused) if paused.why == "the disk is full"));
    let before = operator.job(&name).resume().await.unwrap();
    assert!(before.is_some_and(|paused| paused.by.contains('@')));
    let turn = job.run_once(async |_| Ok::<_, Error>(())).await.unwrap();
    assert!(matches!(turn, Turn::Ran(())));
    settled(&client, &name).await;
}

/// The answer to the write that takes a slot is lost: it was taken, and is run, once.
pub(super) async fn a_slot_taken_by_a_lost_answer_is_run_once(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("lost"));
    let job = client.job(&name).at_most("1h");
    script.next(Verb::WriteCell, [Fault::Lost]);
    let turn = job.run_once(async |run| Ok::<_, Error>(run.slot())).await.unwrap();
    let Turn::Ran(slot) = turn else { panic!("{turn:?}") };
    let state = job.state().await.unwrap().unwrap();
    assert_eq!((state.runs.len(), state.runs[0].slot, state.totals.done), (1, slot, 1));
    settled(&client, &name).await;
}

/// A shutdown cuts a run off, and is over only when that is written down.
pub(super) async fn a_run_that_a_shutdown_cuts_off_is_written_down(fixture: Fixture) {
    let script = Script::new();
    let (client, other) = (fixture.scripted(&script).await, fixture.client().await);
    let (name, mut runner) = (fixture.name("cut"), JoinSet::new());
    let (job, (begun, begins)) = (client.job(&name).at_most("1h"), oneshot::channel());
    runner.spawn(async move {
        let endless = async |_: &Run| {
            begun.send(()).unwrap();
            std::future::pending::<Result<(), Error>>().await
        };
        job.run_once(endless).await.map(drop).unwrap_err().kind()
    });
    begins.await.unwrap();
    script.next(Verb::WriteCell, [Fault::Slow(Duration::from_millis(200))]);
    let told = client.shutdown("20s").await.unwrap();
    let state = other.job(&name).state().await.unwrap().unwrap();
    let [run] = &*state.runs else { panic!("{state:?}") };
    assert!(matches!(&run.ended, Ended::Lost(why) if why.contains("shut down")), "{run:?}");
    assert_eq!((state.running, state.totals.lost, state.totals.died), (None, 1, 0));
    assert_eq!(told.interrupted, [name]);
    assert_eq!(joined(runner).await, [ErrorKind::Lost]);
}
