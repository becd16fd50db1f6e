//! One record, a clock that only the test moves, and sessions that die when the test says so.

use std::{
    num::NonZeroU32,
    sync::{Arc, LazyLock},
    time::Duration,
};

use leasehold_core::{
    ClaimId, ClientId, Key, Who,
    backend::{
        Broken, ClaimSpec, Holds, LatchStep, Life, Mode, Renew, Shape,
        record::{Applied, Moment, Record, Step, Surroundings},
    },
};

use crate::model::Said;

static KEY: LazyLock<Key> = LazyLock::new(|| Key::new("", "the name").expect("a good name"));
static WHO: LazyLock<Arc<Who>> = LazyLock::new(|| Arc::new(Who::here()));

/// Seconds, as everything here counts them.
pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The record and all that its transitions may look at.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) record: Record,
    pub(crate) now: Moment,
    pub(crate) dead: Vec<ClientId>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { record: Record::new(0), now: Moment(1_000_000), dead: Vec::new() }
    }

    /// A step by a client whose session is `asker`.
    pub(crate) fn take(&mut self, step: &Step, asker: Option<ClientId>) -> Applied {
        let alive = |session: ClientId| !self.dead.contains(&session);
        self.record.apply(step, &Surroundings { now: self.now, session: asker, crowd: 64, alive: &alive })
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now.0 += u64::try_from(time.as_micros()).expect("tests move the clock by little");
    }

    pub(crate) fn attempt(&mut self, spec: &Arc<ClaimSpec>) -> Said {
        Said::from(self.take(&attempt(spec), Some(spec.id.client())).answer)
    }

    pub(crate) fn release(&mut self, spec: &ClaimSpec) -> Said {
        Said::from(self.take(&release(spec), Some(spec.id.client())).answer)
    }

    pub(crate) fn latch(&mut self, step: LatchStep) -> Said {
        Said::from(self.take(&Step::Latch(step), None).answer)
    }

    /// Whether this claim would be granted if it tried now, if everybody lived: what the record itself says, not
    /// what could be found out about sessions.
    pub(crate) fn could_win(&self, spec: &Arc<ClaimSpec>) -> bool {
        let mut trial = Self { record: self.record.clone(), now: self.now, dead: Vec::new() };
        matches!(trial.attempt(spec), Said::Granted { .. })
    }
}

/// The session numbered so.
pub(crate) fn session(number: u64) -> ClientId {
    format!("00000000-0000-0000-0000-{number:012x}").parse().expect("the text form of an id")
}

/// The claim numbered so of a session.
pub(crate) fn claim_id(session: ClientId, serial: u64) -> ClaimId {
    format!("{session}:{serial}").parse().expect("the text form of an id")
}

/// An ordinary claim: number `serial`, in a session of its own of the same number.
pub(crate) fn claim(serial: u64, mode: Mode) -> ClaimSpec {
    let (key, who) = (KEY.clone(), WHO.clone());
    let id = claim_id(session(serial), serial);
    ClaimSpec {
        id,
        key,
        mode,
        shape: Shape::Lock,
        ttl: secs(30),
        fair: false,
        life: Life::Session,
        who,
        label: None,
        location: None,
        fences: 1,
    }
}

/// The same, ready to be used in steps.
pub(crate) fn plain(serial: u64, mode: Mode) -> Arc<ClaimSpec> {
    Arc::new(claim(serial, mode))
}

/// The same, standing in the fair line.
pub(crate) fn fair(serial: u64, mode: Mode) -> Arc<ClaimSpec> {
    Arc::new(ClaimSpec { fair: true, ..claim(serial, mode) })
}

pub(crate) fn permits(take: u32, of: u32) -> Mode {
    let some = |number| NonZeroU32::new(number).expect("not zero");
    Mode::Permits { take: some(take), of: some(of) }
}

/// An attempt that waits if it fails.
pub(crate) fn attempt(spec: &Arc<ClaimSpec>) -> Step {
    Step::Attempt { spec: spec.clone(), waiting: true }
}

pub(crate) fn renew(spec: &ClaimSpec, ttl: Duration) -> Step {
    Step::Renew(Renew { key: spec.key.clone(), id: spec.id, mode: spec.mode, ttl })
}

pub(crate) fn recount(spec: &ClaimSpec, exclusive: u32, shared: u32) -> Step {
    Step::Recount { id: spec.id, holds: Holds { exclusive, shared } }
}

/// A release with all answers known.
pub(crate) fn release(spec: &ClaimSpec) -> Step {
    Step::Release { id: spec.id, barrier: false }
}

/// A release while an attempt may still be on its way.
pub(crate) fn withdraw(spec: &ClaimSpec) -> Step {
    Step::Release { id: spec.id, barrier: true }
}

pub(crate) fn break_hold(spec: &ClaimSpec, why: &str) -> Step {
    Step::Break { id: spec.id, broken: broken(why) }
}

pub(crate) fn broken(why: &str) -> Broken {
    Broken { by: "operator".into(), why: why.into() }
}
