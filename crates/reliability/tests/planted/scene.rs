//! A scene: what several who share a name believed, for the checkers; and claims without a client around them.

use std::{sync::Arc, time::Duration};

use leasehold::{
    ClaimId, Guard, Key, Lock, Who,
    backend::{Attempt, Claim, ClaimSpec, Life, Mode as How, Shape},
    time::Clock,
};
use leasehold_testkit::history::{Act, Mode, Recorder, check};

/// All that was done to one name.
pub(crate) struct Scene(Recorder);

impl Scene {
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Recorder::with_time(move || clock.now().as_nanos()))
    }

    /// Takes a lock if it can be had within its patience, and notes it.
    pub(crate) async fn take(&self, lock: &Lock, owner: u64, mode: Mode) -> Option<Guard> {
        let asked = self.0.asked("name", owner, Act::Acquire { mode });
        let taken = lock.try_acquire().await.unwrap();
        match &taken {
            Some(guard) => asked.granted(guard.fence(), guard.deadline().as_nanos()),
            None => asked.failed(),
        }
        taken
    }

    pub(crate) async fn release(&self, guard: Guard, owner: u64) {
        let asked = self.0.asked("name", owner, Act::Release);
        guard.release().await.unwrap();
        asked.done();
    }

    /// The checkers find nothing.
    pub(crate) fn is_sound(&self) {
        let verdict = check(&self.0.history());
        assert!(verdict.is_sound() && verdict.grants > 1, "{verdict}");
    }
}

/// Between two looks.
pub(crate) async fn moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// Joins the line for what is held.
pub(crate) async fn stand(claim: &mut dyn Claim) {
    assert!(matches!(claim.attempt().await.unwrap(), Attempt::Busy(_)));
    claim.changed().await.unwrap();
    assert!(matches!(claim.attempt().await.unwrap(), Attempt::Busy(busy) if busy.place.is_some()));
}

/// An acquisition of a client whose id begins like this, in line.
pub(crate) fn spec(client: &str, ttl: Duration) -> Arc<ClaimSpec> {
    let id: ClaimId = format!("{client:0<8}-0000-0000-0000-000000000000:1").parse().unwrap();
    let (key, mode, shape) = (Key::new("", "name").unwrap(), How::Exclusive, Shape::Lock);
    let (fair, life, who) = (true, Life::Session, Arc::new(Who::here()));
    Arc::new(ClaimSpec { id, key, mode, shape, ttl, fair, life, who, label: None, location: None, fences: 1 })
}
