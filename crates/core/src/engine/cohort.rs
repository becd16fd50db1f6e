//! A cohort: the waiters of one process hand a lock on among themselves, and the store need not know.
//!
//! One claim holds at the store, with a block of fences reserved; guard after guard holds through it, each under the
//! next fence of the block. It is one [`Hold`] all the while: its keeper's entry, its claim, its deadline and its loss
//! stay where they are, and belong to whoever has the hold now. So a guard that has handed on has nothing left to
//! release, and a loss finds the guard of the day.
//!
//! The order of things at the end of a block matters. Nobody of the process asks the store before the release is
//! answered: they would only be told that the lock is busy. From then on the head of the line contends like anybody.
//!
//! A hold on its way is a [`Won`]: whoever drops it on any path hands it on or gives it back. It must not be dropped
//! under the gate's lock, which both of these take.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    gate::Place,
    hold::{Hold, State},
    won::Won,
};
use crate::{
    backend::{Busy, ClaimSpec, Holder},
    id::ClaimId,
};

/// Whether a hold may be handed on at all.
pub(super) fn is_cohort(spec: &ClaimSpec) -> bool {
    spec.fences > 1
}

/// Hands a hold under this fence on to the next who waits for it here. `false` if it must go back to the store: the
/// block is used up, half of the lease is gone, all is not well with it, it was proved to the store, or nobody waits.
pub(super) fn hand_on(hold: &Arc<Hold>, fence: u64) -> bool {
    if !is_cohort(&hold.spec) || !may_be_handed_on(hold, fence) {
        return false;
    }
    let mut won = Won::new(hold.clone(), fence + 1);
    while let Some(heir) = hold.engine.gate.next_heir(hold) {
        match heir.send(won) {
            Ok(()) => return true,
            // It hung up just now; the same fence will do for the next.
            Err(back) => won = back,
        }
    }
    drop(won.take());
    false
}

fn may_be_handed_on(hold: &Hold, fence: u64) -> bool {
    let is_last = fence + 1 >= hold.fence + hold.spec.fences;
    let is_free = !is_last && !hold.is_proved();
    is_free && hold.state() == State::Held && hold.remaining() >= hold.spec.ttl / 2
}

/// What to tell those who find the lock in the hands of this process's own cohort.
pub(super) fn busy(hold: &Hold, waiters: usize) -> Busy {
    let spec = &hold.spec;
    let mut holder = Holder::new(spec.id, spec.mode, hold.fence, spec.who.clone());
    holder.remaining = hold.remaining();
    holder.label.clone_from(&spec.label);
    let retry_after = Some(holder.remaining);
    Busy { holders: vec![holder], waiters, retry_after, ..Busy::default() }
}

/// One who would take over a hold, as the gate lists it.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) spec: Arc<ClaimSpec>,
    pub(super) renews: bool,
    pub(super) sender: oneshot::Sender<Won>,
}

impl Candidate {
    /// One who asks for this, and where it is told, if its sort is handed on at all.
    pub(super) fn of(spec: &Arc<ClaimSpec>, renews: bool) -> Option<(Self, oneshot::Receiver<Won>)> {
        let (sender, receiver) = is_cohort(spec).then(oneshot::channel)?;
        Some((Self { spec: spec.clone(), renews, sender }, receiver))
    }

    /// Whether this one asked for just what the hold is: it will be kept as it was begun, and shows as it was begun.
    pub(super) fn fits(&self, hold: &Hold) -> bool {
        fits(&self.spec, self.renews, hold)
    }
}

fn fits(spec: &ClaimSpec, renews: bool, hold: &Hold) -> bool {
    let first = &hold.spec;
    let same = (spec.fences, spec.ttl, spec.shape) == (first.fences, first.ttl, first.shape);
    same && renews == hold.renews && spec.label == first.label
}

/// What it was worth waiting for.
#[derive(Debug)]
pub(super) enum Turn {
    /// To contend at the store, for as long as this is kept.
    Contend(OwnedSemaphorePermit),
    /// The lock itself.
    Handed(Won),
}

/// A place in line whose owner would take over a hold. Dropped, it is no candidate any more, and what was handed to it
/// unseen goes on to the next.
#[derive(Debug)]
pub(super) struct Heir<'a> {
    place: &'a Place<'a>,
    spec: Arc<ClaimSpec>,
    renews: bool,
    receiver: oneshot::Receiver<Won>,
}

impl<'a> Heir<'a> {
    /// A candidate that joined the line with this place.
    pub(super) fn new(
        place: &'a Place<'a>,
        spec: &Arc<ClaimSpec>,
        renews: bool,
        receiver: oneshot::Receiver<Won>,
    ) -> Self {
        Self { place, spec: spec.clone(), renews, receiver }
    }

    /// Completes when the lock is handed to us, or when it is our turn to contend for it; `None` if the line is gone.
    pub(super) async fn turn(mut self) -> Option<Turn> {
        let mut turn = std::pin::pin!(self.place.turn());
        let permit = tokio::select! {
            biased;
            handed = &mut self.receiver => match handed.ok().and_then(Won::unless_lost) {
                Some(won) => return Some(Turn::Handed(won)),
                None => return turn.await.map(Turn::Contend),
            },
            permit = &mut turn => permit?,
        };
        Some(match self.head().await {
            Some(won) => Turn::Handed(won),
            None => Turn::Contend(permit),
        })
    }

    /// At the head of the line: waits for as long as this process's own cohort has the lock.
    async fn head(&mut self) -> Option<Won> {
        // One of us may just now be asking for all: what it wins may come to us.
        tokio::select! {
            biased;
            handed = &mut self.receiver => return handed.ok().and_then(Won::unless_lost),
            () = self.place.tried() => {}
        }
        while let Some(hold) = self.passing() {
            let mut told = std::pin::pin!(hold.told.notified());
            told.as_mut().enable();
            // Arm, then look: what ended in between rings no more.
            if self.passing().is_none() {
                break;
            }
            tokio::select! {
                biased;
                handed = &mut self.receiver => return handed.ok().and_then(Won::unless_lost),
                () = told => {}
                () = hold.engine.clock.sleep_until(hold.deadline()) => {}
            }
        }
        // From here on it contends: what it has not been handed by now, the others may have.
        self.receiver.close();
        self.receiver.try_recv().ok().and_then(Won::unless_lost)
    }

    /// The hold that may still come to us.
    fn passing(&self) -> Option<Arc<Hold>> {
        self.place.passing().filter(|hold| fits(&self.spec, self.renews, hold))
    }

    fn id(&self) -> ClaimId {
        self.spec.id
    }
}

impl Drop for Heir<'_> {
    fn drop(&mut self) {
        self.place.stand_down(self.id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{backend::Memory, client::Client, key::Key};

    #[tokio::test]
    async fn one_who_hung_up_just_now_is_passed_over() {
        let client = Client::new(Memory::new());
        let lock = client.lock("a").cohort(8);
        let first = lock.acquire().await.unwrap();
        let (engine, key) = (client.engine(), Key::new("", "a").unwrap());
        let looks = engine.gate.join(&key, Busy::default());
        let hold = looks.passing().unwrap();
        let (gone, handed) = Candidate::of(&hold.spec, true).unwrap();
        drop(handed);
        let _gone = engine.gate.join_as(&key, Some(Busy::default()), Some(gone));
        let mut next = tokio::task::JoinSet::from_iter([async move { lock.acquire().await.unwrap() }]);
        while engine.gate.line(&key).is_none_or(|busy| busy.waiters < 3) {
            tokio::task::yield_now().await;
        }
        let (id, fence) = (first.id(), first.fence());
        first.release().await.unwrap();
        let next = next.join_next().await.unwrap().unwrap();
        assert_eq!((next.id(), next.fence()), (id, fence + 1));
    }

    #[tokio::test]
    async fn what_was_proved_to_the_store_is_not_handed_on() {
        let client = Client::new(Memory::new());
        let lock = client.lock("a").cohort(8);
        let first = lock.acquire().await.unwrap();
        let (engine, key) = (client.engine(), Key::new("", "a").unwrap());
        let mut next = tokio::task::JoinSet::from_iter([async move { lock.acquire().await.unwrap() }]);
        while engine.gate.line(&key).is_none_or(|busy| busy.waiters < 1) {
            tokio::task::yield_now().await;
        }
        let proved = first.proof();
        first.release().await.unwrap();
        let next = next.join_next().await.unwrap().unwrap();
        assert_ne!(next.id(), proved.id);
        assert!(next.fence() > proved.fence);
    }
}
