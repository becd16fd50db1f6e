//! The crate `redlock`: it blocks, and makes a connection for every command; so each call has a thread of its own.

use std::{process::ExitCode, sync::Arc};

use leasehold_workload::{Ask, Lock, Peer, main_for};
use redlock::RedLock;

struct Redlock(Arc<RedLock>);

#[derive(Clone)]
struct Named(Arc<RedLock>, String);

/// What is needed to unlock: the crate's own lock borrows from its manager.
struct Held {
    resource: Vec<u8>,
    val: Vec<u8>,
    validity_time: usize,
}

impl Peer for Redlock {
    type Lock = Named;

    fn version() -> String {
        "2.0.0".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        Ok(Self(Arc::new(RedLock::new(vec![ask.url.clone()]))))
    }

    fn lock(&self, name: &str) -> Named {
        Named(self.0.clone(), name.to_owned())
    }
}

impl Lock for Named {
    type Held = Held;

    async fn acquire(&self) -> Result<Held, String> {
        let Self(manager, name) = self.clone();
        let wait = move || loop {
            match manager.lock(name.as_bytes(), 30_000) {
                Ok(Some(lock)) => {
                    let (resource, val) = (lock.resource.clone(), lock.val.clone());
                    return Ok(Held { resource, val, validity_time: lock.validity_time });
                }
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
        };
        tokio::task::spawn_blocking(wait).await.map_err(|error| error.to_string())?
    }

    async fn release(&self, held: Held) -> Result<(), String> {
        let manager = self.0.clone();
        let unlock = move || {
            let Held { resource, val, validity_time } = held;
            manager.unlock(&redlock::Lock { resource, val, validity_time, lock_manager: &manager });
        };
        tokio::task::spawn_blocking(unlock).await.map_err(|error| error.to_string())
    }
}

fn main() -> ExitCode {
    main_for::<Redlock>()
}
