//! The crate `rslock`: waiting is sleeping for up to 200 ms and trying again.

use std::{process::ExitCode, time::Duration};

use leasehold_workload::{Ask, Lock, Peer, main_for};
use rslock::{LockGuard, LockManager};

struct Rslock(LockManager);

#[derive(Clone)]
struct Named(LockManager, String);

impl Peer for Rslock {
    type Lock = Named;

    fn version() -> String {
        "0.10.0".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        Ok(Self(LockManager::new(vec![ask.url.clone()])))
    }

    fn lock(&self, name: &str) -> Named {
        Named(self.0.clone(), name.to_owned())
    }
}

impl Lock for Named {
    type Held = LockGuard;

    async fn acquire(&self) -> Result<LockGuard, String> {
        let lease = Duration::from_secs(30);
        self.0.acquire(self.1.as_str(), lease).await.map_err(|error| error.to_string())
    }

    async fn release(&self, held: LockGuard) -> Result<(), String> {
        held.release().await;
        Ok(())
    }
}

fn main() -> ExitCode {
    main_for::<Rslock>()
}
