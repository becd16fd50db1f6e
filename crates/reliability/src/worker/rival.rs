//! Others' locks in the same workload: acquire, read, work, write, release, without fences.
//!
//! A rival is judged by its own words. If it says until when its lock is good, its holder looks at that before it writes,
//! and overlaps are counted only until then; if it does not, its holder believes until it lets go.

use std::{io, time::Duration};

use async_trait::async_trait;
use leasehold_testkit::history::{Act, Mode};
use tokio::{sync::watch, time::sleep};

use super::{Kind, desk::Desk};
use crate::clock;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// A lock as another library has it. It keeps what it was granted until it is told to release that.
#[async_trait]
pub trait Rival: Send {
    /// Asks for a lock: until when it is good by the library's own words, on [`clock::now`]; `None` if it was refused.
    async fn acquire(&mut self, name: &str, lease: Duration) -> io::Result<Option<u64>>;

    /// Gives it back.
    async fn release(&mut self) -> io::Result<()>;
}

pub(super) async fn shift(
    kind: Kind,
    mut rival: Box<dyn Rival>,
    mut desk: Desk,
    stopped: watch::Receiver<bool>,
) -> Result<(), String> {
    while !*stopped.borrow() {
        if cycle(kind, &mut *rival, &mut desk).await.is_err() {
            desk.tally.count_as(&format!("{kind} request failed"));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

async fn cycle(kind: Kind, rival: &mut dyn Rival, desk: &mut Desk) -> io::Result<()> {
    let (name, owner) = (desk.name(&kind.to_string()), desk.owner());
    let lease = Duration::from_millis(desk.arguments.ttl);
    let asked = desk.recorder.asked(&name, owner, Act::Acquire { mode: Mode::Exclusive });
    let deadline = match rival.acquire(&name, lease).await {
        Ok(Some(deadline)) => deadline,
        Ok(None) => {
            asked.failed();
            return Ok(());
        }
        Err(error) => {
            asked.unknown();
            return Err(error);
        }
    };
    asked.granted(owner, deadline);
    let reading = desk.register.read(&format!("plain/{name}"), owner, 0).await?.unwrap_or(0);
    let half = Duration::from_millis(desk.arguments.work) / 2;
    let long = if desk.dice.one_in(desk.arguments.long) { lease * 3 / 2 } else { Duration::ZERO };
    sleep(desk.dice.between(Duration::ZERO, half + long)).await;
    // As ours: one look half-way.
    if clock::now() < deadline {
        sleep(desk.dice.between(Duration::ZERO, half)).await;
        let value = desk.owner();
        desk.register.write(&format!("plain/{name}"), [owner, 0], [reading, value]).await?;
    }
    let asked = desk.recorder.asked(&name, owner, Act::Release);
    let released = rival.release().await;
    if released.is_ok() {
        asked.done();
    } else {
        asked.unknown();
    }
    released
}
