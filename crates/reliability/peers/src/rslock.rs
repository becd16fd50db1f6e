//! The crate `rslock`: asynchronous, with connections that it keeps and mends by itself.

use std::{io, time::Duration};

use async_trait::async_trait;
use leasehold_reliability::worker::Rival;
use rslock::{Lock, LockError, LockManager};

/// One manager per task.
pub(crate) struct Peer {
    manager: LockManager,
    held: Option<Lock>,
}

impl Peer {
    pub(crate) fn new(servers: Vec<String>) -> Self {
        let mut manager = LockManager::new(servers);
        // Tries are counted one by one here; the pause between them is the harness's.
        manager.set_retry(1, Duration::from_millis(10));
        Self { manager, held: None }
    }
}

#[async_trait]
impl Rival for Peer {
    async fn acquire(&mut self, name: &str, lease: Duration) -> io::Result<Option<u64>> {
        match self.manager.lock(name, lease).await {
            Ok(lock) => {
                let deadline = crate::deadline(lock.validity_time);
                self.held = Some(lock);
                Ok(Some(deadline))
            }
            Err(LockError::Unavailable | LockError::TtlExceeded) => Ok(None),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    async fn release(&mut self) -> io::Result<()> {
        if let Some(lock) = self.held.take() {
            self.manager.unlock(&lock).await;
        }
        Ok(())
    }
}
