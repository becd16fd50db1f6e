//! A library as a benchmark sees it.

use std::future::Future;

use crate::Ask;

/// A library that has locks, connected.
pub trait Peer: Sized + Send + Sync + 'static {
    /// Its locks.
    type Lock: Lock;

    /// Its release.
    fn version() -> String;

    /// Connects as its own documentation does.
    fn connect(ask: &Ask) -> impl Future<Output = Result<Self, String>> + Send;

    /// A lock of this name.
    fn lock(&self, name: &str) -> Self::Lock;

    /// Switches the counting of allocations on or off and says how many there were while it was on; `None` if this
    /// program does not count.
    fn count_allocations(_on: bool) -> Option<u64> {
        None
    }
}

/// A lock, to be asked for as often as one likes.
pub trait Lock: Clone + Send + Sync + 'static {
    /// What one has who holds it.
    type Held: Send + 'static;

    /// Waits until it is ours.
    fn acquire(&self) -> impl Future<Output = Result<Self::Held, String>> + Send;

    /// Gives it back.
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), String>> + Send;
}
