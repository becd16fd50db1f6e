//! Faults drawn from a seed, on every verb at once: whatever happens, the history is sound and all is tidy in the end.

use std::time::Duration;

use leasehold_core::{Client, ErrorKind, Lock};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{joined, settled},
};
use crate::{
    history::{Act, Mode, Recorder, check},
    scripted::Script,
};

/// Ten seeds, three clients with faults of their own, locks of every mode.
pub(super) async fn a_faulty_store_keeps_a_sound_history(fixture: Fixture) {
    let first = Script::random();
    for seed in 0..10 {
        let names = [fixture.name("lock"), fixture.name("rwlock"), fixture.name("permits")];
        let clock = fixture.time();
        let recorder = Recorder::with_time(move || clock.now().as_nanos());
        let scripts = if seed == 0 {
            [first.clone(), Script::seeded(1), Script::seeded(2)]
        } else {
            [seed * 3, seed * 3 + 1, seed * 3 + 2].map(Script::seeded)
        };
        let mut clients = Vec::new();
        for script in &scripts {
            clients.push(fixture.scripted(script).await);
        }
        let mut tasks = JoinSet::new();
        for task in 0..6 {
            tasks.spawn(work(clients[task % 3].clone(), names.clone(), recorder.clone(), task as u64));
        }
        joined(tasks).await;
        let verdict = check(&recorder.history());
        assert!(verdict.is_sound() && verdict.grants > 0, "seed {seed}: {verdict}");
        for script in &scripts {
            script.heal().landed().await;
        }
        // A release the store never got ends with its lease, a place in line with its own.
        tokio::time::sleep(Duration::from_secs(120)).await;
        for (client, name) in clients.iter().flat_map(|client| names.iter().map(move |name| (client, name))) {
            settled(client, name).await;
        }
    }
}

async fn work(client: Client, names: [String; 3], recorder: Recorder, task: u64) {
    for round in 0..12 {
        let [lock, rwlock, permits] = &names;
        let (name, mode, asked): (_, _, Lock) = match (task + round) % 5 {
            0 => (lock, Mode::Exclusive, client.lock(lock)),
            1 => (lock, Mode::Exclusive, client.lock(lock).fair()),
            2 => (rwlock, Mode::Shared, client.rwlock(rwlock).read()),
            3 => (rwlock, Mode::Exclusive, client.rwlock(rwlock).write()),
            _ => (permits, Mode::Permits { take: 2, of: 3 }, client.semaphore(permits, 3).permits(2)),
        };
        let owner = task * 1000 + round;
        hold(&asked.ttl("3s").wait("8s"), name, mode, &recorder, owner).await;
    }
}

/// Holds a lock for a moment if it can be had, renewals included.
async fn hold(lock: &Lock, name: &str, mode: Mode, recorder: &Recorder, owner: u64) {
    let asked = recorder.asked(name, owner, Act::Acquire { mode });
    let guard = match lock.try_acquire().await {
        Ok(Some(guard)) => guard,
        Ok(None) => return asked.failed(),
        Err(error) => {
            let passes = matches!(error.kind(), ErrorKind::Indeterminate | ErrorKind::Unavailable);
            assert!(passes, "{error}");
            return asked.unknown();
        }
    };
    asked.granted(guard.fence(), guard.deadline().as_nanos());
    let rest = tokio::time::sleep(Duration::from_millis(owner % 7 * 400));
    tokio::pin!(rest);
    loop {
        let known = guard.deadline();
        tokio::select! {
            () = &mut rest => break,
            _ = guard.lost() => return recorder.noticed(name, owner, Act::Lost),
            deadline = guard.renewed(known) => {
                recorder.noticed(name, owner, Act::Renewed { deadline: deadline.as_nanos() });
            }
        }
    }
    let asked = recorder.asked(name, owner, Act::Release);
    match guard.release().await {
        Ok(()) => asked.done(),
        Err(_) => asked.unknown(),
    }
}
