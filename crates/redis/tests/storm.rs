//! A contended run in a storm: subscribers killed, scripts flushed, and a failover in the middle.
//!
//! What Sentinel promises is shown here as it is: outside of the failover nobody ever overlaps, and nothing hangs. A
//! failover may lose what the old primary had not passed on, so an overlap that touches it is counted and printed,
//! not an error; fences grow even then. `LEASEHOLD_STORM=60s` makes it longer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::{eventually, spawn};
use leasehold_core::{Client, ErrorKind, Span};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    history::{Act, Event, Mode, Overlap, Recorder, check},
    servers::{
        redis::{Role, Sentinels},
        start_or_skip,
    },
};
use tokio::time::{Instant, sleep};

/// The lease of everything here, and so the longest that anything a failover broke can go on.
const LEASE: Duration = Duration::from_secs(3);

/// One contender until told to stop: acquires, stays a moment, releases, and writes all of it down.
async fn contend(client: Client, recorder: Recorder, owner: u64, stop: Arc<AtomicBool>) -> u64 {
    let mut turns = 0;
    while !stop.load(Ordering::Acquire) {
        let is_fair = owner.is_multiple_of(3);
        let name = if is_fair { "line" } else { "busy" };
        let asked = recorder.asked(name, owner, Act::Acquire { mode: Mode::Exclusive });
        let lock = client.lock(name).ttl(LEASE).wait("10s");
        let lock = if is_fair { lock.fair() } else { lock };
        match lock.acquire().await {
            Ok(guard) => {
                let left = u64::try_from(guard.remaining().as_nanos()).unwrap();
                asked.granted(guard.fence(), recorder.now() + left);
                sleep(Duration::from_millis(owner % 4)).await;
                turns += u64::from(guard.check().is_ok());
                let released = recorder.asked(name, owner, Act::Release);
                match guard.release().await {
                    Ok(()) => released.done(),
                    Err(_) => released.unknown(),
                }
            }
            Err(error) => {
                let passing = [ErrorKind::Unavailable, ErrorKind::Indeterminate, ErrorKind::Busy];
                assert!(passing.contains(&error.kind()), "{error:?}");
                asked.unknown();
            }
        }
    }
    turns
}

/// Sends a command to whoever is the primary, again and again. Replicas are left alone: their sentinels listen there,
/// and do not promote one that they do not hear.
async fn disturb(
    servers: Arc<Sentinels>,
    words: &'static [&'static str],
    every: Duration,
    stop: Arc<AtomicBool>,
) -> u64 {
    let mut times = 0;
    while !stop.load(Ordering::Acquire) {
        sleep(every).await;
        for member in servers.members().iter().filter(|member| matches!(member.role(), Ok(Role::Primary))) {
            times += u64::from(member.command(words).is_ok());
        }
    }
    times
}

fn length() -> Duration {
    let told = std::env::var("LEASEHOLD_STORM").unwrap_or_else(|_| "12s".to_owned());
    Span::from(told.as_str()).get().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hangs_and_nobody_overlaps_but_by_the_failover() {
    let Some(servers) = start_or_skip(Sentinels::start) else { return };
    // The only failover is ours: then it is known when it began.
    servers.notice_after(Duration::from_secs(30)).unwrap();
    let (servers, stop, recorder) = (Arc::new(servers), Arc::new(AtomicBool::new(false)), Recorder::new());
    let mut clients = Vec::new();
    for _ in 0..3 {
        let config =
            RedisConfig::from_url(&servers.url()).unwrap().with_command_timeout(Duration::from_secs(1));
        clients.push(Client::new(Redis::open(config).await.unwrap()));
    }
    let owners = (0..24).zip(clients.iter().cycle());
    let contenders: Vec<_> = owners
        .map(|(owner, client)| spawn(contend(client.clone(), recorder.clone(), owner, stop.clone())))
        .collect();
    let kill = spawn(disturb(
        servers.clone(),
        &["CLIENT", "KILL", "TYPE", "pubsub"],
        Duration::from_millis(200),
        stop.clone(),
    ));
    let flush =
        spawn(disturb(servers.clone(), &["SCRIPT", "FLUSH"], Duration::from_millis(300), stop.clone()));
    let began = Instant::now();
    sleep(length() / 2).await;
    let failover = recorder.now();
    let moving = servers.clone();
    tokio::task::spawn_blocking(move || moving.failover().unwrap()).await.unwrap();
    let chosen = recorder.now();
    sleep((began + length()).saturating_duration_since(Instant::now())).await;
    stop.store(true, Ordering::Release);
    let mut turns = 0;
    for contender in contenders {
        turns += contender.await.unwrap();
    }
    let (killed, flushed) = (kill.await.unwrap(), flush.await.unwrap());
    let history = recorder.history();
    let verdict = check(&history);
    let until = chosen + u64::try_from(LEASE.as_nanos()).unwrap();
    let (by_failover, unexplained): (Vec<_>, Vec<_>) = verdict.overlaps.iter().partition(|overlap| {
        matches!(overlap, Overlap::Holders { older, younger } if older.until >= failover && younger.from <= until)
    });
    println!(
        "{turns} turns, {killed} kills, {flushed} flushes, failover took {} ms, {} overlaps by it",
        (chosen - failover) / 1_000_000,
        by_failover.len()
    );
    assert!(unexplained.is_empty(), "{unexplained:?}");
    assert!(verdict.fences.is_empty(), "{verdict}");
    let granted = |event: &&Event| matches!(event.act, Act::Granted { .. });
    let after = history.iter().filter(|event| event.at > until).filter(granted).count();
    assert!(after > 0, "nobody got a lock after the failover");
    for client in &clients {
        eventually(async || client.stats().held + client.stats().waiting + client.stats().tidying == 0).await;
    }
}
