//! Many at once: tasks that all ask for the same lock, wait, and mostly go away before they have it.

use std::{io, time::Duration};

use leasehold::Lock;
use leasehold_testkit::history::{Act, Mode, Recorder};
use tokio::{task::JoinSet, time::timeout};

use super::desk::Desk;

/// Lets so many ask at once, each for as long as the dice say, and waits until all are gone.
pub(super) async fn gather(desk: &mut Desk, kind: &str, count: u32, patience: Duration) -> io::Result<()> {
    // Always the same: a name that nobody asks for would look like one that nobody can have.
    let name = format!("{kind}-0");
    let lock = desk.client.lock(&name).ttl(Duration::from_millis(desk.arguments.ttl));
    let mut crowd = JoinSet::new();
    for _ in 0..count {
        let (owner, patience) = (desk.owner(), desk.dice.between(Duration::ZERO, patience));
        crowd.spawn(one(lock.clone(), desk.recorder.clone(), owner, patience));
    }
    while let Some(gone) = crowd.join_next().await {
        gone.map_err(io::Error::other)?;
    }
    Ok(())
}

async fn one(lock: Lock, recorder: Recorder, owner: u64, patience: Duration) {
    let asked = recorder.asked(lock.name(), owner, Act::Acquire { mode: Mode::Exclusive });
    match timeout(patience, lock.acquire()).await {
        Err(_) | Ok(Err(_)) => asked.unknown(),
        Ok(Ok(guard)) => {
            asked.granted(guard.fence(), guard.deadline().as_nanos());
            let asked = recorder.asked(lock.name(), owner, Act::Release);
            if guard.release().await.is_ok() { asked.done() } else { asked.unknown() }
        }
    }
}
