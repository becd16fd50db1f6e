//! So many at a time.

use std::sync::Arc;

use super::{Guard, Lock, asked::Asked};
use crate::{backend::Shape, client::Client, error::Result};

/// A semaphore: at most so many permits are out at a time.
///
/// Permits are leases: a dead holder's come back when its lease ends. How many there are is said by those who ask;
/// while any are out or asked for, asking for another number is refused with the kind `Conflict`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold_core::Error> {
/// # use leasehold_core::{Client, backend::Memory};
/// # let locks = Client::new(Memory::new());
/// let uploads = locks.semaphore("uploads", 3);
/// let one = uploads.acquire().await?;
/// let two = uploads.permits(2).acquire().await?;
/// assert!(uploads.permits(1).try_acquire().await?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until it is acquired"]
pub struct Semaphore {
    client: Client,
    name: Arc<str>,
    of: u32,
    shape: Shape,
}

impl Semaphore {
    pub(crate) fn new(client: &Client, name: &str, of: u32) -> Self {
        Self { client: client.clone(), name: name.into(), of, shape: Shape::Lock }
    }

    /// Shares its number with programs that only count permits and do not say who holds them, where the store knows
    /// such: on Redis, with Redisson's `RSemaphore`. Elsewhere it changes nothing.
    ///
    /// Theirs are no leases: what such a program holds when it dies stays missing, and nobody can tell it from what is
    /// held. So a smaller number than was asked for is taken as it is, and only a greater one is a conflict. Ours are
    /// leases all the same: those of a dead holder come back when one of us next asks for permits of this name.
    /// If there is no number yet, the first of us who asks makes it, and it stays for good, as theirs do.
    pub fn counting(mut self) -> Self {
        self.shape = Shape::Counting;
        self
    }

    /// So many permits at once, all or none, with all the options of a lock.
    #[track_caller]
    pub fn permits(&self, take: u32) -> Lock {
        Lock::new(&self.client, &self.name, Asked::Permits { take, of: self.of }).shaped(self.shape)
    }

    /// One permit, waiting for ever.
    ///
    /// # Cancel safety
    /// As for [`Lock::acquire`].
    pub async fn acquire(&self) -> Result<Guard> {
        self.permits(1).acquire().await
    }
}
