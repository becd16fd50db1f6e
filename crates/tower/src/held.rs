//! What a request holds: the layer keeps it, handlers look at it.
//!
//! A handler's [`Held`] does not hold the lock. It can outlive the request, in a task that the handler left behind, and says
//! then that it is over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Error, ErrorKind, Guard, Operation, Result, Watch};
use tokio::sync::Notify;

/// The lock that this request is served under: among the request's extensions, or as an extractor of axum's handlers with
/// the feature `axum`.
///
/// It looks at the lock and does not hold it: when the response is over, so is this, also in a task that lives on.
#[derive(Clone, Debug)]
pub struct Held {
    watch: Watch,
    end: Arc<End>,
}

/// A guard, and the end that those who look at it are told of.
#[derive(Debug)]
pub(crate) struct Tenure {
    guard: Guard,
    end: Arc<End>,
}

#[derive(Debug, Default)]
struct End {
    come: AtomicBool,
    told: Notify,
}

impl Held {
    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.watch.name()
    }

    /// Greater than the fence of every earlier holder: pass it along with each write, and with requests to other services
    /// in the header [`FENCE`](crate::FENCE).
    pub fn fence(&self) -> u64 {
        self.watch.fence()
    }

    /// An error of the kind `Lost` if the lock is lost by now, or the response is over. No I/O.
    pub fn check(&self) -> Result<()> {
        if self.end.come.load(Ordering::SeqCst) { Err(self.over()) } else { self.watch.check() }
    }

    /// How long the lock is held for sure; zero when the response is over. No I/O.
    pub fn remaining(&self) -> Duration {
        if self.end.come.load(Ordering::SeqCst) { Duration::ZERO } else { self.watch.remaining() }
    }

    /// Completes when the lock is lost, or the response is over; says how, with the kind `Lost`.
    ///
    /// A handler need not look: it is dropped when the lock is lost. It is for what the handler has left running elsewhere.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it; a lost lock stays lost.
    pub async fn lost(&self) -> Error {
        tokio::select! {
            biased;
            () = self.end.reached() => self.over(),
            loss = self.watch.lost() => Error::from(loss).about(self.name()),
        }
    }

    fn over(&self) -> Error {
        let message = "the response is over, and its lock was released with it";
        Error::new(ErrorKind::Lost, Operation::Check, message).about(self.name())
    }
}

impl Tenure {
    pub(crate) fn new(guard: Guard) -> Self {
        Self { guard, end: Arc::default() }
    }

    pub(crate) fn held(&self) -> Held {
        Held { watch: self.guard.watch(), end: self.end.clone() }
    }

    pub(crate) fn fence(&self) -> u64 {
        self.guard.fence()
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.guard.check()
    }

    pub(crate) fn watch(&self) -> Watch {
        self.guard.watch()
    }
}

/// Those who look are told before the lock can pass on: the guard is dropped after this.
impl Drop for Tenure {
    fn drop(&mut self) {
        if Arc::strong_count(&self.end) == 1 {
            // Nobody looks, and nobody can begin to: the handler is gone with all it had.
            return;
        }
        self.end.come.store(true, Ordering::SeqCst);
        self.end.told.notify_waiters();
    }
}

impl End {
    async fn reached(&self) {
        let mut told = std::pin::pin!(self.told.notified());
        // Arm, then look: what was said in between rings no more.
        told.as_mut().enable();
        if !self.come.load(Ordering::SeqCst) {
            told.await;
        }
    }
}

#[cfg(feature = "axum")]
mod extract {
    use axum_core::{
        body::Body,
        extract::{FromRequestParts, OptionalFromRequestParts},
        response::Response,
    };
    use http::request::Parts;

    use super::Held;
    use crate::problem::Problem;

    /// A handler that wants it never runs without it: such a request is answered with 500.
    impl<S: Sync> FromRequestParts<S> for Held {
        type Rejection = Response;

        async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
            parts
                .extensions
                .get()
                .cloned()
                .ok_or_else(|| Problem::without_lock().answer::<Body>().map(Body::new))
        }
    }

    /// `None` where the layer's key was none, or there is no layer.
    impl<S: Sync> OptionalFromRequestParts<S> for Held {
        type Rejection = std::convert::Infallible;

        async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
            Ok(parts.extensions.get().cloned())
        }
    }
}
