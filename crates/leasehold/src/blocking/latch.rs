//! Wait until so many things have happened, in synchronous code.

use crate::{Result, Span};

front! {
    /// A latch, for synchronous code; see [`leasehold::Latch`](crate::Latch).
    #[derive(Clone, Debug)]
    #[must_use = "a latch does nothing until it is used"]
    Latch(crate::Latch) like Latch
    waits {
        arm(count: u64) -> Result<bool>;
        count_down() -> Result<u64>;
        count() -> Result<u64>;
        wait() -> Result<()>;
        wait_for(wait: impl Into<Span>) -> Result<bool>;
    }
}
