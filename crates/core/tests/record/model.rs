//! The rules of a name, written down as plainly as possible: one list of facts, and questions asked of it.
//!
//! The record keeps holders, waiters and marks apart and changes them in place; the model has a single list in the
//! order things came to be, where a fact is true until its time. It is slow and has no wake-ups: those are the
//! business of the invariants.

mod facts;
mod said;

use std::time::Duration;

use leasehold_core::{
    ClaimId, ClientId, ErrorKind,
    backend::{
        ClaimSpec, Holds, Kind, LatchStep, Life, Mode,
        record::{Moment, Step, WAIT_LEASE},
    },
};

use self::facts::{Fact, Sort, What};
pub(crate) use self::said::{HeldBy, Said, Seen, WaitedFor};

/// How long a forced release and a withdrawn id are remembered.
const MEMORY: Duration = Duration::from_secs(60);

/// All that is known of one name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    fence: u64,
    facts: Vec<Fact>,
    latch: u64,
    counted: Vec<ClaimId>,
}

/// Who asks, when, and who is dead by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) now: Moment,
    pub(crate) by: Option<ClientId>,
    pub(crate) dead: &'a [ClientId],
}

impl Model {
    /// Takes the step and says what the answer must be.
    pub(crate) fn take(&mut self, step: &Step, asked: Asked<'_>) -> Said {
        self.facts.retain(|fact| fact.until > asked.now.0);
        match step {
            Step::Attempt { spec, waiting } => self.attempt(spec, *waiting, asked),
            Step::Renew(renew) => match self.hold(renew.id) {
                Some(fact) => {
                    // A renewal may come late, after a longer one: it never cuts a lease short.
                    fact.until = fact.until.max(later(asked.now, renew.ttl));
                    Said::Renewed(renew.ttl)
                }
                None => Said::Lost(self.breakage(renew.id)),
            },
            Step::Recount { id, holds } => self.recount(*id, *holds, asked),
            Step::Raise { id, fence } => self.raise(*id, *fence, asked),
            Step::Release { id, barrier } => self.release(*id, *barrier, asked),
            Step::Break { id, broken } => {
                let Some(until) = self.hold(*id).map(|fact| fact.until) else { return Said::NotHeld };
                self.facts.retain(|fact| fact.id != *id);
                self.fence += 1;
                let until = later(Moment(until), MEMORY);
                self.facts.push(Fact { id: *id, until, session: None, what: What::Broke(broken.clone()) });
                Said::Broken
            }
            Step::Latch(step) => self.step_latch(*step, asked),
        }
    }

    fn attempt(&mut self, spec: &ClaimSpec, waiting: bool, asked: Asked<'_>) -> Said {
        if self.facts.iter().any(|fact| fact.id == spec.id && fact.is_an_end()) {
            return Said::Refused(ErrorKind::Lost);
        }
        if !self.make_way_for(Sort::of(spec.mode), asked) {
            return Said::Refused(ErrorKind::Conflict);
        }
        if let Some(&mut Fact { until, what: What::Holds { fence, .. }, .. }) = self.hold(spec.id) {
            return Said::Granted { fence, granted: Duration::from_micros(until - asked.now.0) };
        }
        let before_us = self.line_before(spec.id);
        self.facts.retain(|fact| {
            let in_the_way = fact.is_hold() || before_us.contains(&fact.id);
            !(in_the_way && fact.is_dead(asked))
        });
        if self.is_free_for(spec) {
            return self.grant(spec, asked);
        }
        if waiting {
            self.wait(spec, asked);
        }
        self.busy(spec, asked.now)
    }

    /// Whether the name may be used as this sort of thing; what only the dead used it as does not count.
    fn make_way_for(&mut self, wanted: Sort, asked: Asked<'_>) -> bool {
        if self.latch > 0 {
            return wanted == Sort::Latch;
        }
        let foreign = |fact: &Fact| fact.sort().is_some_and(|sort| sort != Sort::Latch && sort != wanted);
        if self.facts.iter().any(|fact| foreign(fact) && !fact.is_dead(asked)) {
            return false;
        }
        if self.facts.iter().any(foreign) {
            self.facts.retain(|fact| fact.is_an_end() || !fact.is_dead(asked));
        }
        true
    }

    /// Those in the fair line who came before this claim; all of them if it is not in line itself.
    fn line_before(&self, id: ClaimId) -> Vec<ClaimId> {
        let line = self.facts.iter().filter(|fact| fact.is_in_line()).map(|fact| fact.id);
        line.take_while(|&other| other != id).collect()
    }

    fn is_free_for(&self, spec: &ClaimSpec) -> bool {
        let line = self.line_before(spec.id);
        let ahead = || self.facts.iter().filter(|fact| line.contains(&fact.id)).filter_map(Fact::mode);
        let held = || self.facts.iter().filter(|fact| fact.is_hold()).filter_map(Fact::mode);
        match spec.mode {
            Mode::Open => self.latch == 0,
            Mode::Shared => ahead().chain(held()).all(|mode| mode == Mode::Shared),
            Mode::Permits { take, of } => {
                let taken: u32 = held()
                    .map(|mode| if let Mode::Permits { take, .. } = mode { take.get() } else { 0 })
                    .sum();
                ahead().next().is_none() && taken + take.get() <= of.get()
            }
            _ => ahead().chain(held()).next().is_none(),
        }
    }

    fn grant(&mut self, spec: &ClaimSpec, asked: Asked<'_>) -> Said {
        self.facts.retain(|fact| fact.id != spec.id);
        if spec.mode != Mode::Open {
            self.fence += 1;
            let what = What::Holds { mode: spec.mode, fence: self.fence, count: 1, since: asked.now };
            let session = asked.by.filter(|_| spec.life == Life::Session);
            self.facts.push(Fact { id: spec.id, until: later(asked.now, spec.ttl), session, what });
        }
        Said::Granted { fence: self.fence, granted: spec.ttl }
    }

    /// A place is for fifteen seconds, and is prolonged once less than half of that is left. It ends with the
    /// process that waits, even where the grant would not.
    fn wait(&mut self, spec: &ClaimSpec, asked: Asked<'_>) {
        let until = later(asked.now, WAIT_LEASE);
        if let Some(fact) = self.facts.iter_mut().find(|fact| fact.id == spec.id) {
            if fact.until < later(asked.now, WAIT_LEASE / 2) {
                fact.until = until;
            }
            return;
        }
        // Those who wait for a latch all pass at once: they form no line and stand in nobody's way.
        let fair = spec.fair && spec.mode != Mode::Open;
        let what = What::Waits { mode: spec.mode, fair, since: asked.now };
        self.facts.push(Fact { id: spec.id, until, session: asked.by, what });
    }

    fn busy(&self, spec: &ClaimSpec, now: Moment) -> Said {
        let holders: Vec<HeldBy> = self.facts.iter().filter_map(|fact| fact.held_by(now)).collect();
        let in_line = self.facts.iter().any(|fact| fact.id == spec.id && fact.is_in_line());
        let lease = holders.iter().map(|holder| holder.remaining).min();
        Said::Busy {
            place: in_line.then(|| self.line_before(spec.id).len() + 1),
            waiters: self.facts.iter().filter(|fact| fact.is_wait() && fact.id != spec.id).count(),
            retry_after: lease.map_or(WAIT_LEASE / 3, |lease| lease.min(WAIT_LEASE / 3)),
            holders,
        }
    }

    fn recount(&mut self, id: ClaimId, holds: Holds, asked: Asked<'_>) -> Said {
        let lost = Said::Lost(self.breakage(id));
        let Some(fact) = self.hold(id) else { return lost };
        let What::Holds { mode, count, .. } = &mut fact.what else { return lost };
        *count = holds.total();
        if *mode == Mode::Exclusive && holds.exclusive == 0 && holds.shared > 0 {
            *mode = Mode::Shared;
        }
        Said::Renewed(Duration::from_micros(fact.until - asked.now.0))
    }

    fn raise(&mut self, id: ClaimId, raised: u64, asked: Asked<'_>) -> Said {
        let lost = Said::Lost(self.breakage(id));
        let Some(fact) = self.hold(id) else { return lost };
        let What::Holds { fence, .. } = &mut fact.what else { return lost };
        *fence = raised.max(*fence);
        let left = Duration::from_micros(fact.until - asked.now.0);
        self.fence = self.fence.max(raised);
        Said::Renewed(left)
    }

    fn release(&mut self, id: ClaimId, barrier: bool, asked: Asked<'_>) -> Said {
        let found = self.facts.iter().any(|fact| fact.id == id && (fact.is_hold() || fact.is_wait()));
        let said = if found { Said::Released } else { Said::Gone(self.breakage(id)) };
        self.facts.retain(|fact| fact.id != id || (fact.what == What::Withdrawn && !barrier));
        if barrier {
            let until = later(asked.now, MEMORY);
            self.facts.push(Fact { id, until, session: None, what: What::Withdrawn });
        }
        said
    }

    fn step_latch(&mut self, step: LatchStep, asked: Asked<'_>) -> Said {
        if !self.make_way_for(Sort::Latch, asked) {
            return Said::Refused(ErrorKind::Conflict);
        }
        match step {
            LatchStep::Arm { count } if self.latch == 0 => {
                self.latch = count;
                self.counted.clear();
            }
            LatchStep::CountDown { id } if self.latch > 0 && !self.counted.contains(&id) => {
                self.latch -= 1;
                self.counted.push(id);
            }
            _ => {}
        }
        Said::Count(self.latch)
    }

    /// What people should be shown.
    pub(crate) fn see(&self, asked: Asked<'_>) -> Option<Seen> {
        let shown = || self.facts.iter().filter(|fact| fact.until > asked.now.0 && !fact.is_dead(asked));
        let kind = match self.latch {
            0 => shown().find_map(Fact::kind)?,
            count => Kind::Latch { count },
        };
        let mut waiters: Vec<WaitedFor> = shown().filter_map(|fact| fact.waited_for(asked.now)).collect();
        waiters.sort_by_key(|waiter| !waiter.fair);
        let holders = shown().filter_map(|fact| fact.held_by(asked.now)).collect();
        Some(Seen { kind, fence: self.fence, holders, waiters })
    }

    /// Whether this claim waits.
    pub(crate) fn waits(&self, id: ClaimId) -> bool {
        self.facts.iter().any(|fact| fact.id == id && fact.is_wait())
    }

    /// Whether nothing is left but the fence.
    pub(crate) fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.latch == 0
    }

    fn hold(&mut self, id: ClaimId) -> Option<&mut Fact> {
        self.facts.iter_mut().find(|fact| fact.id == id && fact.is_hold())
    }

    fn breakage(&self, id: ClaimId) -> Option<leasehold_core::backend::Broken> {
        self.facts.iter().filter(|fact| fact.id == id).find_map(|fact| match &fact.what {
            What::Broke(broken) => Some(broken.clone()),
            _ => None,
        })
    }
}

fn later(now: Moment, by: Duration) -> u64 {
    now.0 + u64::try_from(by.as_micros()).expect("tests use short times")
}
