//! What a case needs of a store. What a store lacks it must refuse, and that is what is tested then.

use std::fmt::Debug;

use leasehold_core::{
    Error, ErrorKind, Result,
    backend::{Capabilities, Expect},
};

use super::Fixture;
use crate::scripted::Script;

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Shared,
    Permits,
    Fair,
    Latch,
    Rate,
    Detached,
    Cohort,
    Cells,
}

impl Need {
    pub(super) fn is_met(self, can: &Capabilities) -> bool {
        match self {
            Self::Shared => can.shared,
            Self::Permits => can.permits,
            Self::Fair => can.fair,
            Self::Latch => can.latch,
            Self::Rate => can.rate,
            Self::Detached => can.detached,
            Self::Cohort => can.cohort,
            Self::Cells => can.cells,
        }
    }
}

/// A store that lacks this refuses it with the kind `Unsupported`, and sends nothing.
pub(super) async fn refused(fixture: &Fixture, need: Need) {
    let script = Script::new();
    let client = fixture.scripted(&script).await;
    let name = &fixture.name("refused");
    match need {
        Need::Shared => {
            unsupported(client.rwlock(name).read().try_acquire().await);
            unsupported(client.rwlock(name).read().acquire().await);
            unsupported(client.set().read(name).acquire().await);
        }
        Need::Permits => {
            unsupported(client.semaphore(name, 2).permits(1).try_acquire().await);
            unsupported(client.semaphore(name, 2).acquire().await);
            unsupported(client.set().permits(name, 1, 2).acquire().await);
        }
        Need::Fair => {
            unsupported(client.lock(name).fair().try_acquire().await);
            unsupported(client.lock(name).fair().acquire().await);
        }
        Need::Latch => {
            unsupported(client.latch(name).arm(1).await);
            unsupported(client.latch(name).count_down().await);
            unsupported(client.latch(name).count().await);
            unsupported(client.latch(name).wait().await);
        }
        Need::Rate => {
            let limiter = client.rate_limiter(name);
            unsupported(limiter.set_rate(1, "1s").await);
            unsupported(limiter.try_set_rate(1, "1s").await);
            unsupported(limiter.try_acquire(1).await);
            unsupported(limiter.acquire(1).await);
            unsupported(limiter.available().await);
        }
        Need::Detached => unsupported(client.lock(name).ticket().await),
        Need::Cohort => {
            unsupported(client.lock(name).cohort(2).try_acquire().await);
            unsupported(client.lock(name).cohort(64).acquire().await);
        }
        Need::Cells => return refuses_cells(fixture, name).await,
    }
    assert_eq!(script.requests(), 0, "what is refused is not sent");
}

/// Cells are asked of the store itself: it refuses them, and none comes to be.
async fn refuses_cells(fixture: &Fixture, name: &str) {
    let backend = fixture.backend(&Script::new()).await;
    unsupported(backend.write_cell(name, Expect::Absent, b"x", None).await);
    unsupported(backend.read_cell(name).await);
    unsupported(backend.list_cells(name, None, 10).await);
    let election = fixture.client().await.election(name);
    unsupported(election.campaign("x").await);
    unsupported(election.leader().await);
    let job = fixture.client().await.job(name).at_most("1m");
    unsupported(job.run_once(async |_| Ok::<_, Error>(())).await);
    unsupported(job.pause("x").await);
    unsupported(job.state().await);
}

fn unsupported<T: Debug>(result: Result<T>) {
    let error = result.expect_err("what a store lacks is refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
