//! What must be so after every step, whatever the model thinks of the answer.

use std::sync::Arc;

use leasehold_core::{
    ClaimId, ClientId,
    backend::{
        ClaimSpec, LockState, Mode,
        record::{Applied, Record, Step, Surroundings, Wake},
    },
};

use crate::{
    model::Said,
    world::{World, attempt},
};

/// One step, with the world before and after it.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) before: &'a World,
    pub(crate) step: &'a Step,
    pub(crate) said: &'a Said,
    pub(crate) changed: bool,
    pub(crate) wake: &'a [Wake],
    pub(crate) after: &'a World,
    pub(crate) asker: Option<ClientId>,
}

impl Taken<'_> {
    pub(crate) fn check(&self) {
        let (before, after) = (self.before.everyone(), self.after.everyone());
        if !self.changed {
            assert_eq!(self.before.record, self.after.record, "a change that nobody would keep");
        }
        assert!(after.record_fence >= before.record_fence, "the fence fell");
        if let Some(state) = &after.state {
            assert_exclusion(state);
            self.check_grants(&before, state);
        }
        self.check_repetition();
    }

    /// Only attempts make holders, each with a fence above all before it; asking again finds the same one.
    fn check_grants(&self, before: &Everyone, state: &LockState) {
        for holder in &state.holders {
            if let Some(known) = before.fence_of(holder.id) {
                let raised = match self.step {
                    Step::Raise { id, fence } if *id == holder.id => known.max(*fence),
                    _ => known,
                };
                assert_eq!(raised, holder.fence, "the fence of a hold changed");
                continue;
            }
            let Step::Attempt { spec, .. } = self.step else { panic!("{:?} made a holder", self.step) };
            assert_eq!(spec.id, holder.id, "an attempt granted to somebody else");
            assert!(holder.fence > before.record_fence, "a fence that is not above all before it");
            self.check_order(before, spec);
        }
        if let (Step::Attempt { spec, .. }, Said::Granted { fence, .. }) = (self.step, self.said)
            && spec.mode != Mode::Open
        {
            let holder =
                state.holders.iter().find(|holder| holder.id == spec.id).expect("the granted one holds");
            assert_eq!(holder.fence, *fence);
        }
    }

    /// Nobody overtakes the living in the fair line, but readers may pass readers.
    fn check_order(&self, before: &Everyone, winner: &ClaimSpec) {
        let Some(state) = &before.state else { return };
        let line = state.waiters.iter().filter(|waiter| waiter.fair);
        for waiter in line.take_while(|waiter| waiter.id != winner.id) {
            let both_read = (winner.mode, waiter.mode) == (Mode::Shared, Mode::Shared);
            let dead = self.before.dead.contains(&waiter.id.client());
            assert!(both_read || dead, "{:?} overtook {:?}", winner.id, waiter.id);
        }
    }

    /// The very same request again, at the same moment, changes nothing and learns the same.
    fn check_repetition(&self) {
        let mut again = self.after.clone();
        let said = Said::from(again.take(self.step, self.asker).answer);
        assert_eq!(again.record, self.after.record, "a repeated request changed something");
        match self.step {
            Step::Release { .. } => assert!(matches!(said, Said::Gone(None))),
            Step::Break { .. } => assert_eq!(said, Said::NotHeld),
            _ => assert_eq!(&said, self.said, "a repeated request learned something else"),
        }
    }

    /// No lost wake-up: whoever can win now and could not before is rung, or somebody is who would win instead.
    pub(crate) fn check_wakes(&self, waiting: &[Arc<ClaimSpec>], could_win: &[ClaimId]) {
        for (at, wake) in self.wake.iter().enumerate() {
            assert!(waiting.iter().any(|spec| spec.id == wake.id), "woke {:?}, who does not wait", wake.id);
            assert!(self.wake[..at].iter().all(|other| other.id != wake.id), "woke {:?} twice", wake.id);
        }
        let rung = ring(self.wake, self.after);
        for spec in waiting {
            let is_dead = self.after.dead.contains(&spec.id.client());
            if is_dead
                || could_win.contains(&spec.id)
                || rung.contains(&spec.id)
                || !self.after.could_win(spec)
            {
                continue;
            }
            let instead = rung.last().and_then(|last| waiting.iter().find(|spec| spec.id == *last));
            let served =
                instead.is_some_and(|other| other.mode == Mode::Exclusive && self.after.could_win(other));
            assert!(served, "{:?} can win now, and nobody told it; rung: {rung:?}", spec.id);
        }
    }
}

/// The bells a store rings: in order, up to the first reached that would win alone.
pub(crate) fn ring(wakes: &[Wake], world: &World) -> Vec<ClaimId> {
    let mut rung = Vec::new();
    for wake in wakes.iter().filter(|wake| !world.dead.contains(&wake.id.client())) {
        rung.push(wake.id);
        if wake.alone {
            break;
        }
    }
    rung
}

/// A record with nothing left in it is as good as a new one above its fence.
pub(crate) fn assert_vacant_is_new(world: &World, cast: &[Arc<ClaimSpec>]) {
    for spec in cast {
        let fresh = World { record: Record::new(world.record.fence()), ..world.clone() };
        let answers = [world.clone(), fresh].map(|mut world| {
            let Applied { answer, .. } = world.take(&attempt(spec), None);
            (Said::from(answer), world.record)
        });
        assert_eq!(answers[0], answers[1], "a vacant record differs from a new one");
    }
}

fn assert_exclusion(state: &LockState) {
    let modes = || state.holders.iter().map(|holder| holder.mode);
    let exclusive = modes().filter(|mode| *mode == Mode::Exclusive).count();
    assert!(exclusive == 0 || state.holders.len() == 1, "an exclusive holder is not alone: {state:?}");
    let (taken, of) = modes().fold((0, u32::MAX), |(taken, least), mode| match mode {
        Mode::Permits { take, of } => (taken + take.get(), least.min(of.get())),
        _ => (taken, least),
    });
    assert!(taken <= of, "more permits held than there are: {state:?}");
}

/// What the record says if nobody is dead: everything in it.
struct Everyone {
    record_fence: u64,
    state: Option<LockState>,
}

impl Everyone {
    fn fence_of(&self, id: ClaimId) -> Option<u64> {
        let holders = self.state.as_ref().map_or(&[][..], |state| &state.holders);
        holders.iter().find(|holder| holder.id == id).map(|holder| holder.fence)
    }
}

impl World {
    fn everyone(&self) -> Everyone {
        let around = Surroundings { now: self.now, session: None, crowd: 64, alive: &|_| true };
        Everyone { record_fence: self.record.fence(), state: self.record.view("the name", &around) }
    }

    /// What people are shown.
    pub(crate) fn living(&self) -> Option<LockState> {
        let alive = |session| !self.dead.contains(&session);
        self.record.view("the name", &Surroundings { now: self.now, session: None, crowd: 64, alive: &alive })
    }
}
