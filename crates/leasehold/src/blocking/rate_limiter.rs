//! So many in so long, for synchronous code.

use crate::{Result, Span, backend::Rate};

front! {
    /// A rate limiter, for synchronous code; see [`leasehold::RateLimiter`](crate::RateLimiter).
    #[derive(Clone, Debug)]
    #[must_use = "a limiter does nothing until it is used"]
    RateLimiter(crate::RateLimiter) like RateLimiter
    options {
        wait(wait: impl Into<Span>);
        per_client();
        keep(keep: impl Into<Span>);
    }
    waits {
        set_rate(permits: u32, per: impl Into<Span>) -> Result<()>;
        try_set_rate(permits: u32, per: impl Into<Span>) -> Result<bool>;
        try_acquire(permits: u32) -> Result<bool>;
        acquire(permits: u32) -> Result<()>;
        available() -> Result<u64>;
        rate() -> Result<Option<Rate>>;
        remove() -> Result<bool>;
    }
}
