//! Proof of holding a lock, for synchronous code.

use std::time::Duration;

use crate::{
    ClaimId, Proof, Result, Span, State,
    backend::{Guarantee, Loss},
    time::Instant,
};

/// What a guard can do without being given up.
macro_rules! guard {
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)? ($inner:ty) $($ends:tt)*) => {
        front! {
            $(#[$meta])*
            $name $(<$life>)? ($inner) like Guard
            looks {
                name() -> &str;
                fence() -> u64;
                id() -> ClaimId;
                proof() -> Proof;
                guarantee() -> Guarantee;
                state() -> State;
                check() -> Result<()>;
                remaining() -> Duration;
                deadline() -> Instant;
            }
            waits {
                lost() -> Loss;
                renewed(known: Instant) -> Instant;
                extend(lease: impl Into<Span>) -> Result<()>;
                ensure(remaining: impl Into<Span>) -> Result<()>;
            }
            $($ends)*
        }
    };
}

guard! {
    /// A held lock, for synchronous code; see [`leasehold::Guard`](crate::Guard). Dropping it, on any thread, releases the
    /// lock in the background.
    #[derive(Debug)]
    #[must_use = "if unused the lock is released at once"]
    Guard(crate::Guard)
    ends {
        release() -> Result<()>;
    }
}

guard! {
    /// The guard of a lock that something else holds and will release.
    #[derive(Clone, Copy, Debug)]
    GuardRef<'a>(&'a crate::Guard)
}
