//! Transitions of locks and semaphores: attempt, renew, recount, release, break.

use std::{sync::Arc, time::Duration};

use super::{
    Held, MAX_FENCE, Mark, Moment, Person, Record, Spent, Step, Surroundings, WAIT_LEASE, Waiting,
    step::Answer,
};
use crate::{
    backend::{
        Attempt, BreakOutcome, Broken, Busy, ClaimSpec, Grant, Holds, Kind, Life, Loss, Mode, Release, Renew,
        Renewal,
    },
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
    planted::{Bug, planted},
    who::Who,
};

/// How soon a waiter that is not listed, and so cannot be woken, should look again.
const UNLISTED: Duration = Duration::from_secs(1);

/// How long a mark of a forced release, or a spent id, outlives the lease it is about.
const MEMORY: Duration = Duration::from_secs(60);

/// An answer, whether the record changed, and whether others' chances rose.
type Transition = (Result<Answer>, bool, bool);

impl Record {
    pub(super) fn attempt(
        &mut self,
        spec: &Arc<ClaimSpec>,
        waiting: bool,
        around: &Surroundings<'_>,
    ) -> Transition {
        let cleared = match self.admits(spec, around) {
            Ok(cleared) => cleared,
            Err(error) => return (Err(error), false, false),
        };
        let is_own = |held: &&Held| held.id == spec.id && !planted(Bug::RetryWithoutId);
        if let Some(held) = self.holders.iter().find(is_own) {
            let granted = held.expires.since(around.now);
            let grant = Grant { fence: held.fence, granted };
            return (Ok(Answer::Attempt(Attempt::Granted(grant))), false, false);
        }
        let buried = self.bury(spec, around) || cleared;
        if self.is_open_to(spec) {
            // Whoever leaves the line lets those behind it move up.
            let in_line = self.waiters.iter().any(|waiting| waiting.id == spec.id && waiting.fair);
            let grant = self.grant(spec, around);
            return (Ok(Answer::Attempt(Attempt::Granted(grant))), true, buried || in_line);
        }
        let listed = waiting && self.stand(spec, around);
        let busy = self.busy(spec, waiting, around.now);
        (Ok(Answer::Attempt(Attempt::Busy(busy))), buried || listed, buried)
    }

    /// What comes to the same as the whole way and is much shorter: nobody uses the name and one takes it, or that one gives
    /// it back before its lease ends and nobody else has left a trace.
    pub(super) fn apply_alone(&mut self, step: &Step, around: &Surroundings<'_>) -> Option<Answer> {
        match step {
            Step::Attempt { spec, .. } if spec.mode == Mode::Exclusive && self.is_vacant() => {
                Some(Answer::Attempt(Attempt::Granted(self.grant(spec, around))))
            }
            Step::Release { id, barrier: false } if self.is_alone(*id, around.now) => {
                self.holders.clear();
                Some(Answer::Release(Release::Released))
            }
            _ => None,
        }
    }

    /// Nothing is here but what this acquisition holds.
    fn is_alone(&self, id: ClaimId, now: Moment) -> bool {
        let Self { holders, waiters, latch: None, broken, spent, .. } = self else { return false };
        matches!(&holders[..], [held] if held.id == id && held.expires > now)
            && waiters.is_empty()
            && broken.is_empty()
            && spent.is_empty()
    }

    pub(super) fn renew(&mut self, renew: &Renew, now: Moment) -> Transition {
        if planted(Bug::RenewCreates) {
            self.make_anew(renew, now);
        }
        let Some(held) = self.holders.iter_mut().find(|held| held.id == renew.id) else {
            return (Ok(Answer::Renewal(self.lost(renew.id))), false, false);
        };
        // Never earlier than it was: a renewal that comes late must not cut short what a later one was granted.
        held.expires = held.expires.max(now.after(renew.ttl));
        (Ok(Answer::Renewal(Renewal::Renewed { granted: renew.ttl })), true, false)
    }

    pub(super) fn recount(&mut self, id: ClaimId, holds: Holds, now: Moment) -> Transition {
        let Some(held) = self.holders.iter_mut().find(|held| held.id == id) else {
            return (Ok(Answer::Renewal(self.lost(id))), false, false);
        };
        let downgraded = held.mode == Mode::Exclusive && holds.exclusive == 0 && holds.shared > 0;
        if downgraded {
            held.mode = Mode::Shared;
        }
        held.count = holds.total();
        let granted = held.expires.since(now);
        (Ok(Answer::Renewal(Renewal::Renewed { granted })), true, downgraded)
    }

    pub(super) fn raise(&mut self, id: ClaimId, fence: u64, now: Moment) -> Transition {
        let Some(held) = self.holders.iter_mut().find(|held| held.id == id) else {
            return (Ok(Answer::Renewal(self.lost(id))), false, false);
        };
        if fence > MAX_FENCE {
            let message = format!("{fence} is not a fence that can be counted on from");
            return (Err(Error::new(ErrorKind::Internal, Operation::Acquire, message)), false, false);
        }
        let raised = fence > self.fence.min(held.fence);
        held.fence = held.fence.max(fence);
        self.fence = self.fence.max(fence);
        let granted = held.expires.since(now);
        (Ok(Answer::Renewal(Renewal::Renewed { granted })), raised, false)
    }

    pub(super) fn release(&mut self, id: ClaimId, barrier: bool, now: Moment) -> Transition {
        let held = self.holders.iter().any(|held| is_released(held.id, id));
        let waited = self.waiters.iter().any(|waiting| waiting.id == id);
        let mark = self.broken.iter().position(|mark| mark.id == id).map(|at| self.broken.remove(at).broken);
        self.holders.retain(|held| !is_released(held.id, id));
        self.waiters.retain(|waiting| waiting.id != id);
        if barrier {
            self.spent.retain(|spent| spent.id != id);
            self.spent.push(Spent { id, until: now.after(MEMORY) });
        }
        let changed = held || waited || mark.is_some() || barrier;
        let release = if held || waited { Release::Released } else { Release::Gone(mark) };
        (Ok(Answer::Release(release)), changed, held || waited)
    }

    pub(super) fn break_hold(&mut self, id: ClaimId, broken: &Broken, now: Moment) -> Transition {
        let Some(at) = self.holders.iter().position(|held| held.id == id) else {
            return (Ok(Answer::Break(BreakOutcome::NotHeld)), false, false);
        };
        let held = self.holders.remove(at);
        self.fence += 1;
        let until = held.expires.max(now).after(MEMORY);
        self.broken.push(Mark { id, broken: broken.clone(), until });
        (Ok(Answer::Break(BreakOutcome::Broken)), true, true)
    }

    /// Holds what is to be renewed, if nobody does: only a planted bug would.
    fn make_anew(&mut self, renew: &Renew, now: Moment) {
        if self.holders.is_empty() {
            let (id, mode, count, since, expires) = (renew.id, renew.mode, 1, now, now.after(renew.ttl));
            let person = Person { who: Arc::new(Who::here()), label: None, location: None, session: None };
            self.holders.push(Held { id, mode, fence: self.fence, count, since, expires, person });
        }
    }

    fn lost(&self, id: ClaimId) -> Renewal {
        Renewal::Lost(self.broken.iter().find(|mark| mark.id == id).map(|mark| mark.broken.clone()))
    }

    /// Refuses what could never be granted: an id that is over, a name in use as something else. Says whether the
    /// dead had to be removed for it.
    fn admits(&mut self, spec: &ClaimSpec, around: &Surroundings<'_>) -> Result<bool> {
        if self.spent.iter().any(|spent| spent.id == spec.id) {
            let message = "this acquisition was withdrawn before its request arrived";
            return Err(Error::new(ErrorKind::Lost, Operation::Acquire, message));
        }
        // A late copy of the request must not undo a forced release: its holder would go on under an old fence.
        if let Some(mark) = self.broken.iter().find(|mark| mark.id == spec.id) {
            return Err(Error::from_loss(Operation::Acquire, Loss::Broken(mark.broken.clone())));
        }
        let fits = |found| match (found, spec.mode) {
            (Kind::Lock, Mode::Exclusive | Mode::Shared) | (Kind::Latch { .. }, Mode::Open) => true,
            (Kind::Semaphore { of: found }, Mode::Permits { of, .. }) => found == of.get(),
            _ => false,
        };
        let conflict = |found| Error::conflict(Operation::Acquire, found, &spec.mode.noun());
        self.make_way(fits, around).map_err(conflict)
    }

    /// Removes the dead who stand in our way. Says whether there were any.
    fn bury(&mut self, spec: &ClaimSpec, around: &Surroundings<'_>) -> bool {
        let before = self.entries();
        self.holders.retain(|held| held.person.lives(around));
        let ahead = self.ahead(spec);
        let mut index = 0;
        self.waiters.retain(|waiting| {
            index += 1;
            index > ahead || !waiting.fair || waiting.person.lives(around)
        });
        before != self.entries()
    }

    /// How many waiters came before us: all of them, if we do not stand in line.
    fn ahead(&self, spec: &ClaimSpec) -> usize {
        let place = self.waiters.iter().position(|waiting| waiting.id == spec.id && waiting.fair);
        place.unwrap_or(self.waiters.len())
    }

    /// Whether nothing held and nobody in the fair line before us forbids it.
    fn is_open_to(&self, spec: &ClaimSpec) -> bool {
        let line = &self.waiters[..self.ahead(spec)];
        let passes = match spec.mode {
            Mode::Open => return self.latch.is_none(),
            Mode::Shared => line.iter().all(|waiting| !waiting.fair || waiting.mode == Mode::Shared),
            _ => line.iter().all(|waiting| !waiting.fair),
        };
        passes
            && match spec.mode {
                Mode::Permits { take, of } => {
                    self.permits_held() + u64::from(take.get()) <= u64::from(of.get())
                }
                Mode::Shared => self.holders.iter().all(|held| held.mode == Mode::Shared),
                _ => self.holders.is_empty(),
            }
    }

    fn permits_held(&self) -> u64 {
        self.holders.iter().map(|held| u64::from(held.mode.permits())).sum()
    }

    fn grant(&mut self, spec: &ClaimSpec, around: &Surroundings<'_>) -> Grant {
        self.waiters.retain(|waiting| waiting.id != spec.id);
        if spec.mode == Mode::Open {
            return Grant { fence: self.fence, granted: spec.ttl };
        }
        let fence = self.fence + 1;
        self.fence += spec.fences;
        if self.holders.is_empty() {
            // Most names have one holder; a vector's usual first growth would be for four.
            self.holders.reserve_exact(1);
        }
        self.holders.push(Held {
            id: spec.id,
            mode: spec.mode,
            fence,
            count: 1,
            since: around.now,
            expires: around.now.after(spec.ttl),
            person: Person::of(spec, around),
        });
        Grant { fence, granted: spec.ttl }
    }

    /// Joins the waiters, or gives a sign of life if it is among them. Says whether the record changed.
    fn stand(&mut self, spec: &ClaimSpec, around: &Surroundings<'_>) -> bool {
        let expires =
            if planted(Bug::PlaceWithoutLease) { Moment(u64::MAX) } else { around.now.after(WAIT_LEASE) };
        if let Some(waiting) = self.waiters.iter_mut().find(|waiting| waiting.id == spec.id) {
            let stale = waiting.expires.since(around.now) < WAIT_LEASE / 2;
            if stale {
                waiting.expires = expires;
            }
            return stale;
        }
        // Those who wait for a latch all pass at once: they form no line and stand in nobody's way.
        let fair = spec.fair && spec.mode != Mode::Open;
        if !fair && self.waiters.iter().filter(|waiting| !waiting.fair).count() >= around.crowd {
            return false;
        }
        // Waiting ends with the process, whatever the grant does; and only by its session can a waiter be rung.
        let person = Person { session: around.session, ..Person::of(spec, around) };
        let (id, mode, since) = (spec.id, spec.mode, around.now);
        self.waiters.push(Waiting { id, mode, fair, since, expires, person });
        true
    }

    fn busy(&self, spec: &ClaimSpec, waiting: bool, now: Moment) -> Busy {
        let ours = self.waiters.iter().position(|waiting| waiting.id == spec.id);
        let before = |at: usize| self.waiters[..at].iter().filter(|waiting| waiting.fair).count();
        let lease = self.holders.iter().map(|held| held.expires.since(now)).min();
        // Those who wait unlisted cannot be woken: they look again soon.
        let most = if waiting && ours.is_none() { UNLISTED } else { WAIT_LEASE / 3 };
        Busy {
            holders: self.holders.iter().map(|held| held.view(now)).collect(),
            place: ours.filter(|&at| self.waiters[at].fair).map(|at| before(at) + 1),
            waiters: self.waiters.len() - usize::from(ours.is_some()),
            ahead: ours.unwrap_or(self.waiters.len()),
            retry_after: Some(lease.unwrap_or(most).min(most)),
        }
    }
}

/// Whether a release of `id` ends what `held` has: it ends exactly one acquisition.
fn is_released(held: ClaimId, id: ClaimId) -> bool {
    held == id
        || planted(Bug::ReleaseWithoutOwner)
        || (planted(Bug::ReleaseByOwnerOnly) && held.client() == id.client())
}

impl Person {
    fn of(spec: &ClaimSpec, around: &Surroundings<'_>) -> Self {
        let session = around.session.filter(|_| spec.life == Life::Session);
        let (label, location) = (spec.label.clone(), spec.location.clone());
        Self { who: spec.who.clone(), label, location, session }
    }
}
