//! The crate `distributed-lock-redis`. Its `acquire` does not wait, though its documentation says so: it fails at
//! once when the lock is held. So this program looks again every 50 ms, in its favour.

use std::{process::ExitCode, sync::Arc, time::Duration};

use distributed_lock_core::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_redis::{RedisLockHandle, RedisLockProvider};
use leasehold_workload::{Ask, Lock, Peer, main_for};

struct DistributedLock(Arc<RedisLockProvider>);

#[derive(Clone)]
struct Named(Arc<RedisLockProvider>, String);

impl Peer for DistributedLock {
    type Lock = Named;

    fn version() -> String {
        "0.2.0".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let provider = RedisLockProvider::new(ask.url.clone()).await.map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(provider)))
    }

    fn lock(&self, name: &str) -> Named {
        Named(self.0.clone(), name.to_owned())
    }
}

impl Lock for Named {
    type Held = RedisLockHandle;

    async fn acquire(&self) -> Result<RedisLockHandle, String> {
        let lock = self.0.create_lock(&self.1);
        loop {
            match lock.acquire(None).await {
                Ok(held) => return Ok(held),
                Err(error) => {
                    let message = error.to_string();
                    if !message.to_lowercase().contains("time") {
                        return Err(message);
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn release(&self, held: RedisLockHandle) -> Result<(), String> {
        held.release().await.map_err(|error| error.to_string())
    }
}

fn main() -> ExitCode {
    main_for::<DistributedLock>()
}
