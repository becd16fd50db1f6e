//! Many readers or one writer.

use std::sync::Arc;

use super::{Lock, asked::Asked};
use crate::{
    backend::{Mode, Shape},
    client::Client,
};

/// A read-write lock: any number of readers, or one writer.
///
/// Readers and writers of one name are the same lock as [`Client::lock`] of that name: `write()` and `lock()` mean
/// the same. Readers that keep coming can keep a writer waiting; with [`Lock::fair`] on both sides they cannot.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let prices = locks.rwlock("prices");
/// let (one, two) = (prices.read().acquire().await?, prices.read().acquire().await?);
/// assert!(prices.write().try_acquire().await?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct RwLock {
    client: Client,
    name: Arc<str>,
}

impl RwLock {
    pub(crate) fn new(client: &Client, name: &str) -> Self {
        Self { client: client.clone(), name: name.into() }
    }

    /// The lock as a reader holds it.
    #[track_caller]
    pub fn read(&self) -> Lock {
        Lock::new(&self.client, &self.name, Asked::Mode(Mode::Shared)).shaped(Shape::ReadWrite)
    }

    /// The lock as a writer holds it.
    #[track_caller]
    pub fn write(&self) -> Lock {
        Lock::exclusive(&self.client, &self.name).shaped(Shape::ReadWrite)
    }
}
