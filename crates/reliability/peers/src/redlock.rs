//! The crate `redlock`: blocking, with a new connection for every request, so each call has a thread of its own.

use std::{io, sync::Arc, time::Duration};

use async_trait::async_trait;
use leasehold_reliability::worker::Rival;
use redlock::{Lock, RedLock};
use tokio::task::spawn_blocking;

/// What it has of a lock; the crate's own borrows the manager.
struct Held {
    resource: Vec<u8>,
    value: Vec<u8>,
}

/// One manager per task.
pub(crate) struct Peer {
    manager: Arc<RedLock>,
    held: Option<Held>,
}

impl Peer {
    pub(crate) fn new(servers: Vec<String>) -> Self {
        let mut manager = RedLock::new(servers);
        // Tries are counted one by one here; the pause between them is the harness's.
        manager.set_retry(1, 10);
        Self { manager: Arc::new(manager), held: None }
    }
}

#[async_trait]
impl Rival for Peer {
    async fn acquire(&mut self, name: &str, lease: Duration) -> io::Result<Option<u64>> {
        let (manager, resource) = (self.manager.clone(), name.as_bytes().to_vec());
        let lease = usize::try_from(lease.as_millis()).unwrap_or(usize::MAX);
        let locked = spawn_blocking(move || {
            let lock = manager.lock(&resource, lease).map_err(io::Error::other)?;
            let deadline = |lock: &Lock<'_>| crate::deadline(lock.validity_time);
            Ok::<_, io::Error>(lock.map(|lock| (deadline(&lock), Held { value: lock.val.clone(), resource })))
        });
        let locked = locked.await.map_err(io::Error::other)??;
        Ok(locked.map(|(deadline, held)| {
            self.held = Some(held);
            deadline
        }))
    }

    async fn release(&mut self) -> io::Result<()> {
        let Some(Held { resource, value }) = self.held.take() else { return Ok(()) };
        let manager = self.manager.clone();
        let released = spawn_blocking(move || {
            manager.unlock(&Lock { resource, val: value, validity_time: 0, lock_manager: &manager });
        });
        released.await.map_err(io::Error::other)
    }
}
