//! What a function returns, whatever becomes of its lock.

use super::{Acquired, Fails, Skips, is_busy};
use crate::{Error, blocking};

/// How a function says what happened, in the type that it returns. It alone runs a body, and only with proof of holding.
#[derive(Debug)]
#[must_use = "it says nothing by itself"]
pub struct Answer<R> {
    failed: fn(Error) -> R,
    is_well: fn(&R) -> bool,
}

impl<R> Answer<R> {
    /// Whatever goes wrong is an error.
    pub fn failing() -> Self
    where
        R: Fails,
    {
        Self { failed: R::failed, is_well: R::is_well }
    }

    /// Whatever goes wrong is an error, but for a busy lock.
    pub fn skipping() -> Self
    where
        R: Skips,
    {
        let failed = |error: Error| if is_busy(&error) { R::skipped() } else { R::failed(error) };
        Self { failed, is_well: R::is_well }
    }

    /// What to return when the lock is not to be had.
    pub fn failed(&self, error: Error) -> R {
        (self.failed)(error)
    }

    /// Runs the body; drops it where it stands once the lock is lost. A loss that it did not come to notice, since it never
    /// waited again, is an error as well.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body and releases the lock in the background.
    pub async fn cancel_if_lost<F: Future<Output = R>>(self, held: Acquired, body: F) -> R {
        let body = held.around(body);
        let done = tokio::select! {
            biased;
            error = held.lost() => return self.failed(error),
            done = body => done,
        };
        let done = self.unless_lost(&held, done);
        held.release().await;
        done
    }

    /// Runs the body to its end, whatever becomes of the lock.
    ///
    /// # Cancel safety
    /// As for [`cancel_if_lost`](Self::cancel_if_lost).
    pub async fn finish<F: Future<Output = R>>(self, held: Acquired, body: F) -> R {
        let done = held.around(body).await;
        held.release().await;
        done
    }

    /// Runs the body to its end on this thread; if the lock is lost by then, that is an error.
    pub fn fail_if_lost_here(self, held: Acquired, body: impl FnOnce() -> R) -> R {
        let done = held.around_here(body);
        let done = self.unless_lost(&held, done);
        blocking::wait(held.release());
        done
    }

    /// Runs the body to its end on this thread, whatever becomes of the lock.
    pub fn finish_here(self, held: Acquired, body: impl FnOnce() -> R) -> R {
        let done = held.around_here(body);
        blocking::wait(held.release());
        done
    }
    /// What the body says, or the loss; what went wrong in the body itself counts more.
    fn unless_lost(&self, held: &Acquired, done: R) -> R {
        match held.check() {
            Err(error) if (self.is_well)(&done) => self.failed(error),
            _ => done,
        }
    }
}
