//! The crate `redisson`, which is not of Redisson's makers. Its locks remember who has them, so each acquisition is
//! made with a lock of its own.

use std::{process::ExitCode, sync::Arc};

use leasehold_workload::{Ask, Lock, Peer, main_for};
use redisson::{AsyncRLock, AsyncRedissonClient, RedissonConfig};

struct RedissonRs(Arc<AsyncRedissonClient>);

#[derive(Clone)]
struct Named(Arc<AsyncRedissonClient>, String);

impl Peer for RedissonRs {
    type Lock = Named;

    fn version() -> String {
        "0.1.0".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let client = AsyncRedissonClient::new(RedissonConfig::single_server(&ask.url)).await;
        client.map(|client| Self(Arc::new(client))).map_err(|error| format!("{error:?}"))
    }

    fn lock(&self, name: &str) -> Named {
        Named(self.0.clone(), name.to_owned())
    }
}

impl Lock for Named {
    type Held = AsyncRLock;

    async fn acquire(&self) -> Result<AsyncRLock, String> {
        let lock = self.0.get_lock(&self.1);
        lock.lock().await.map_err(|error| format!("{error:?}"))?;
        Ok(lock)
    }

    async fn release(&self, held: AsyncRLock) -> Result<(), String> {
        held.unlock().await.map(drop).map_err(|error| format!("{error:?}"))
    }
}

fn main() -> ExitCode {
    main_for::<RedissonRs>()
}
