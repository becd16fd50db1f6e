//! Leasehold as one of those that are measured: `plain` and `cohort` are how its locks are asked for.

use leasehold::{Client, Guard, connect};
use leasehold_workload::{Ask, Lock, Peer};

use crate::allocations;

/// A client.
pub(crate) struct Ours {
    client: Client,
    variant: Variant,
}

#[derive(Clone, Copy)]
enum Variant {
    Usual,
    Plain,
    Cohort,
}

#[derive(Clone)]
pub(crate) struct Named(leasehold::Lock);

impl Peer for Ours {
    type Lock = Named;

    fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let variant = match ask.more.first().map(String::as_str) {
            Some("plain") => Variant::Plain,
            Some("cohort") => Variant::Cohort,
            _ => Variant::Usual,
        };
        let client = connect(&ask.url).await.map_err(|error| error.to_string())?;
        Ok(Self { client, variant })
    }

    fn lock(&self, name: &str) -> Named {
        let lock = self.client.lock(name);
        Named(match self.variant {
            Variant::Usual => lock,
            Variant::Plain => lock.plain(),
            Variant::Cohort => lock.cohort(64),
        })
    }

    fn count_allocations(on: bool) -> Option<u64> {
        Some(allocations::count(on))
    }
}

impl Lock for Named {
    type Held = Guard;

    async fn acquire(&self) -> Result<Guard, String> {
        self.0.acquire().await.map_err(|error| error.to_string())
    }

    async fn release(&self, held: Guard) -> Result<(), String> {
        held.release().await.map_err(|error| error.to_string())
    }
}
