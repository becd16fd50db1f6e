//! A look at a held lock, for those who work under it while somebody else keeps the guard.

use std::{sync::Arc, time::Duration};

use crate::{
    backend::Loss,
    engine::hold::Hold,
    error::{Operation, Result},
};

/// Sees a lock that a [`Guard`](crate::Guard) holds, without holding it. Clones are cheap.
///
/// It knows of losses only. That the guard was released or dropped, whoever kept the guard has to say: until its lease
/// ends, a lock that was given back is not lost.
#[derive(Clone, Debug)]
pub struct Watch {
    hold: Arc<Hold>,
    fence: u64,
}

impl Watch {
    pub(super) fn new(hold: Arc<Hold>, fence: u64) -> Self {
        Self { hold, fence }
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.hold.spec.key.name()
    }

    /// The guard's fence.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// As [`Guard::check`](crate::Guard::check), for as long as there is the guard. No I/O.
    pub fn check(&self) -> Result<()> {
        self.hold.check(Operation::Check)
    }

    /// As [`Guard::remaining`](crate::Guard::remaining), for as long as there is the guard. No I/O.
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// Completes when the lock is lost, and says how.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it; a lost lock stays lost.
    pub async fn lost(&self) -> Loss {
        self.hold.lost().await
    }
}
