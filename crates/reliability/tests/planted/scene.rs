//! A scene: what several who share a name believed, for the checkers.

use leasehold::{Guard, Lock, time::Clock};
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
