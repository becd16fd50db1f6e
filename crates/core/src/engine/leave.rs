//! Giving a lock back: from a release, from a dropped guard, from a shutdown.
//!
//! The order matters. First belief ends and the keeper forgets the hold, at once and without I/O; then the store
//! is told. A renewal already on its way can do no harm: it never creates a lock.

use std::{sync::Arc, time::Duration};

use super::{
    Engine, cohort,
    hold::Hold,
    keep, observe,
    time::{Clock, Instant},
};
use crate::{
    backend::{Claim, Holds, Mode, Release},
    error::{Error, ErrorKind, Operation, Result, Retry},
    id::ClaimId,
    key::Key,
    planted::{Bug, planted},
};

/// Leaves what was held under this fence, and tells how that went. Dropping the future changes nothing: the janitor goes on with it.
pub(crate) async fn leave(hold: &Arc<Hold>, mode: Mode, fence: u64) -> Result<()> {
    if cohort::hand_on(hold, fence) {
        return Ok(());
    }
    let finished = if exit(hold, mode).total() > 0 {
        hold.engine.carry_on(write_count(hold.clone())).await
    } else if let Some((claim, answer)) = release_now(hold) {
        left(hold, claim, answer)
    } else {
        hold.engine.carry_on(withdraw(hold.clone())).await
    };
    finished.map_err(|error| error.during(Operation::Release).about(hold.spec.key.name()))
}

/// Leaves without waiting for the store: what dropping a guard does.
pub(crate) fn in_background(hold: &Arc<Hold>, mode: Mode, fence: u64) {
    if cohort::hand_on(hold, fence) {
        return;
    }
    let still = exit(hold, mode);
    if still.total() == 0
        && let Some((claim, answer)) = release_now(hold)
    {
        // Whether it was lost before is not looked at: nobody asks.
        drop(withdrawn(hold, claim, answer));
        return;
    }
    let hold = hold.clone();
    let engine = hold.engine.clone();
    engine.janitor.carry(Box::pin(async move {
        // Nobody waits for the answer: what fails is retried or ends with the lease. Nor is it a loss that the answer was late.
        if still.total() > 0 {
            drop(write_count(hold).await);
        } else if let Some((claim, answer)) = release(&hold).await {
            drop(withdrawn(&hold, claim, answer));
        }
    }));
}

/// Gives back what is nobody's process's. Whose it was, and for how long, can only be asked before.
pub(crate) async fn release_detached(
    engine: &Engine,
    key: &Key,
    id: ClaimId,
    mode: Mode,
    fence: u64,
) -> Result<Release> {
    let backend = &*engine.backend;
    let is_written = backend.info().capabilities.cells;
    let before = if is_written { backend.inspect(key).await.ok().flatten() } else { None };
    let released = backend.release(key, id, mode).await;
    let mut holders = before.into_iter().flat_map(|state| state.holders);
    if let (Ok(Release::Released), Some(holder)) = (&released, holders.find(|holder| holder.id == id)) {
        engine.keeper.ended_by_ticket(key, holder, fence, &engine.clock);
    }
    released
}

/// Tells the store how often the owner holds it now. The count written is the one at the time of writing, so
/// that of several who write the last one is right.
pub(crate) async fn recount(hold: &Arc<Hold>) -> Result<()> {
    hold.engine.carry_on(write_count(hold.clone())).await
}

/// Extends the lease at once, for this long from now.
pub(crate) async fn extend(hold: &Arc<Hold>, asked: Duration) -> Result<()> {
    hold.check(Operation::Renew)?;
    let own = hold.clone();
    let work = async move {
        let engine = &own.engine;
        let batch = std::slice::from_ref(&own);
        let heard = keep::renew(&engine.keeper, &*engine.backend, &engine.clock, batch, Some(asked)).await;
        heard.into_iter().next().unwrap_or(Ok(()))
    };
    hold.engine.carry_on(work).await
}

async fn write_count(hold: Arc<Hold>) -> Result<()> {
    let mut claim = hold.claim.lock().await;
    let Some(claim) = claim.as_deref_mut() else { return hold.check(Operation::Reenter) };
    let holds = *hold.holds();
    let sent = hold.engine.clock.now();
    let answer = claim.recount(holds).await;
    hold.heard(sent, answer)
}

/// Withdraws a hold, whatever its count.
pub(super) async fn withdraw(hold: Arc<Hold>) -> Result<()> {
    match release(&hold).await {
        Some((claim, answer)) => left(&hold, claim, answer),
        None => hold.check(Operation::Release),
    }
}

/// Asks the store for it; `None` if that was done before.
async fn release(hold: &Hold) -> Option<(Box<dyn Claim>, Result<Release>)> {
    let mut claim = hold.claim.lock().await.take()?;
    let answer = claim.release().await;
    Some((claim, answer))
}

/// The same on the spot, where the store needs no future for it; `None` if it does, or if another task is speaking
/// through the claim.
fn release_now(hold: &Hold) -> Option<(Box<dyn Claim>, Result<Release>)> {
    let mut slot = hold.claim.try_lock().ok()?;
    let answer = slot.as_mut()?.release_now()?;
    Some((slot.take()?, answer))
}

/// What the store said, and an error if it was lost by then. Whether it was is looked at once, before it is told how the
/// hold ended: a holder who is told of a loss did not let go in time. What the store knows of a loss comes first; one who is
/// told that the store did not answer is told of no loss.
fn left(hold: &Hold, claim: Box<dyn Claim>, answer: Result<Release>) -> Result<()> {
    if matches!(answer, Ok(Release::Released)) {
        drop(hold.loss());
    }
    withdrawn(hold, claim, answer)?;
    hold.check_known(Operation::Release)
}

/// What the store said to it; what could not be told to the store, the janitor goes on with.
fn withdrawn(hold: &Hold, claim: Box<dyn Claim>, answer: Result<Release>) -> Result<()> {
    if cohort::is_cohort(&hold.spec) {
        hold.engine.gate.passes_no_more(hold);
    }
    match answer {
        Ok(Release::Released) => observe::released(hold),
        Ok(Release::Gone(broken)) => hold.lose(broken.into()),
        Err(error) => {
            observe::released(hold);
            let (clock, until) = (hold.engine.clock.clone(), hold.deadline());
            hold.engine.janitor.carry(Box::pin(release_until(clock, claim, until)));
            return Err(still_trying(&error).because(error));
        }
    }
    over(hold);
    Ok(())
}

/// Writes down, later, how it ended.
fn over(hold: &Hold) {
    let engine = &hold.engine;
    engine.keeper.ended(hold, hold.known_loss(), &engine.clock);
}

/// Releases a claim, retrying while that can still matter.
pub(super) async fn release_until(clock: Clock, mut claim: Box<dyn Claim>, until: Instant) {
    let mut pause = Duration::from_millis(50);
    while let Err(error) = claim.release().await {
        if error.retry() == Retry::No || clock.now() >= until {
            tracing::warn!(%error, "a lock could not be released; it ends with its lease");
            return;
        }
        clock.pause(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Ends one hold of it, at once; with the last one the keeper forgets it.
fn exit(hold: &Hold, mode: Mode) -> Holds {
    let left = hold.exit(mode);
    if left.total() == 0 {
        observe::let_go(hold);
        if !planted(Bug::RenewerNotStopped) {
            hold.engine.keeper.forget(hold);
        }
    }
    left
}

fn still_trying(error: &Error) -> Error {
    let kind = if error.retry() == Retry::No { error.kind() } else { ErrorKind::Unavailable };
    Error::new(kind, Operation::Release, "could not tell the store yet; still trying until the lease ends")
}
