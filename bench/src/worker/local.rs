//! A semaphore of this process: what a lock would be if there were no store.

use std::sync::Arc;

use leasehold_workload::{Ask, Lock, Peer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// There is one lock, whatever its name: scenarios that use several do not run here.
pub(crate) struct Local(Arc<Semaphore>);

#[derive(Clone)]
pub(crate) struct Named(Arc<Semaphore>);

impl Peer for Local {
    type Lock = Named;

    fn version() -> String {
        "tokio's semaphore".to_owned()
    }

    async fn connect(_: &Ask) -> Result<Self, String> {
        Ok(Self(Arc::new(Semaphore::new(1))))
    }

    fn lock(&self, _name: &str) -> Named {
        Named(self.0.clone())
    }
}

impl Lock for Named {
    type Held = OwnedSemaphorePermit;

    async fn acquire(&self) -> Result<OwnedSemaphorePermit, String> {
        self.0.clone().acquire_owned().await.map_err(|error| error.to_string())
    }

    async fn release(&self, held: OwnedSemaphorePermit) -> Result<(), String> {
        drop(held);
        Ok(())
    }
}
