//! `#[scheduled]` as it is meant to be used.

#![cfg(feature = "macros")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::{Client, Error, ErrorKind, Run, Slot, Turn, job::Ended, run_all, scheduled};
use tokio::task::JoinSet;

type Log = Arc<Mutex<Vec<Slot>>>;

/// Runs every second.
#[scheduled(cron = "* * * * * *", name = "tick", at_most = "10s", client = locks)]
async fn tick(run: &Run, locks: Client, log: Log) -> Result<(), Error> {
    assert!(locks.inspect("tick").await?.is_some(), "whoever runs holds the lock");
    log.lock().unwrap().push(run.slot());
    run.check()
}

/// Every option, and nothing in return.
#[scheduled(
    cron = "0 0 1 1 *",
    zone = "Asia/Shanghai",
    name = "yearly",
    at_most = "2h",
    at_least = "5m",
    jitter = Duration::from_secs(1),
    catch_up = skip,
    ttl = "10s",
    client = locks,
)]
pub(crate) async fn yearly(locks: Client) {
    drop(locks);
}

#[scheduled(cron = "* * * * * *", name = "broken", at_most = "10s", client = locks)]
async fn broken(locks: Client, why: &'static str) -> Result<u32, String> {
    let _ = locks;
    Err(format!("{why}, as always"))
}

#[scheduled(cron = "@hourly", name = "orphan", at_most = "1m", client = "nobody installed this")]
async fn orphan() {}

async fn memory() -> Client {
    leasehold::connect("memory:").await.unwrap()
}

/// Waits until this is so; a hang is ended by whoever runs the tests.
async fn until(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn jobs_of_a_fleet_run_each_slot_once() {
    let (locks, log) = (memory().await, Log::default());
    let mut fleet = JoinSet::new();
    for _ in 0..2 {
        fleet.spawn(run_all([tick(locks.clone(), log.clone()), yearly(locks.clone())]));
    }
    until(async || log.lock().unwrap().len() >= 2).await;
    locks.shutdown("5s").await.unwrap();
    fleet.join_all().await.into_iter().for_each(|ended| ended.unwrap());
    let log = log.lock().unwrap().clone();
    assert_eq!(log.iter().collect::<BTreeSet<_>>().len(), log.len(), "{log:?}");
}

#[tokio::test]
async fn a_job_keeps_its_name_and_its_schedule() {
    let locks = memory().await;
    let job = yearly(locks.clone());
    assert_eq!(job.job().unwrap().name(), "yearly");
    let Turn::NotDue(Some(next)) = job.run_once().await.unwrap() else { panic!("it comes at New Year") };
    assert!(next.to_string().ends_with("-12-31T16:00:00Z"), "{next} is not New Year in Shanghai");
    let state = locks.job("yearly").state().await.unwrap().unwrap();
    assert_eq!(
        (state.schedule.as_deref(), state.zone.as_deref()),
        (Some("0 0 1 1 *"), Some("Asia/Shanghai"))
    );
}

#[tokio::test]
async fn what_a_job_says_of_its_failure_is_kept() {
    let locks = memory().await;
    let mut fleet = JoinSet::new();
    let job = broken(locks.clone(), "no luck");
    fleet.spawn(async move { job.run().await });
    let job = locks.job("broken");
    until(async || job.state().await.unwrap().is_some_and(|state| state.totals.failed > 0)).await;
    let state = job.state().await.unwrap().unwrap();
    assert_eq!(state.runs[0].ended, Ended::Failed("no luck, as always".into()));
}

#[tokio::test]
async fn a_job_without_a_client_says_what_to_install() {
    for error in [orphan().run().await.unwrap_err(), run_all([orphan()]).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("install_as"), "{error}");
    }
}
