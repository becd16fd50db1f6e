//! The one wait loop.
//!
//! Try; if somebody else has it, wait for the first of: the store's bell, its hint, the end of our patience, our
//! caller hanging up, the client closing; then try again. A wake-up is a hint, and a hint may be wrong: a bell
//! that rings at once and for nothing is slowed down, a real wait costs nothing extra.

use std::time::Duration;

use super::{
    Engine, closed,
    time::{Clock, Instant},
};
use crate::{
    backend::{Attempt, Busy, Claim, Grant},
    error::{Error, ErrorKind, Operation, Result, Retry},
    planted::{Bug, planted},
};

/// How much longer than its patience a caller waits for an answer that is on its way.
pub(super) const MARGIN: Duration = Duration::from_millis(500);

/// After a bell that could not be set up, the first pause before the next look; the next ones are longer and longer, up to
/// the store's hint.
const DEAF: Duration = Duration::from_millis(25);

/// Beyond so many others ahead, more of them change nothing.
const CROWD: usize = 20;

/// How long to stand in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all: one try.
    None,
    /// Until then.
    Until(Instant),
    /// For ever.
    Forever,
}

impl Patience {
    /// The same, and a little longer: for answers that should be there by then.
    pub(crate) fn and_a_little(self) -> Self {
        match self {
            Self::Until(end) => Self::Until(end.after(MARGIN)),
            other => other,
        }
    }

    /// Awaits something for as long as there is patience; `None` when it ends first.
    pub(crate) async fn bear<T>(self, clock: &Clock, ready: impl Future<Output = T>) -> Option<T> {
        let end = async {
            match self {
                Self::None => {}
                Self::Until(end) => clock.pause(clock.now().until(end)).await,
                Self::Forever => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ready = ready => Some(ready),
            () = end => None,
        }
    }
}

/// How a contest ended without an error.
#[derive(Debug)]
pub(super) enum Contended {
    /// Won, by a request sent at this time.
    Won(Grant, Instant),
    /// Not won within our patience.
    Busy(Busy),
    /// The caller went away.
    HungUp,
}

/// What one contest needs besides its claim.
pub(super) struct Contest<'a> {
    pub(super) engine: &'a Engine,
    pub(super) patience: Patience,
    /// Errors that may pass are borne for this long without any answer from the store.
    pub(super) bears: Duration,
    /// Since when those we wait with ask and are not answered.
    pub(super) unanswered: Option<Instant>,
    /// Hears what the store says; `None` when it says nothing.
    pub(super) told: &'a (dyn Fn(Option<&Busy>) + Send + Sync),
}

impl Contest<'_> {
    /// Contends until the lock is won, patience ends, or `hung_up` completes.
    pub(super) async fn run(
        &self,
        claim: &mut dyn Claim,
        hung_up: &mut (impl Future<Output = ()> + Send + Unpin),
    ) -> Result<Contended> {
        let clock = &self.engine.clock;
        let mut sent = clock.now();
        let mut unanswered = self.unanswered;
        let (mut pace, mut deaf) = (Pace::default(), 0);
        loop {
            let busy = match claim.attempt().await.and_then(|attempt| in_time(attempt, sent, clock.now())) {
                Ok(Attempt::Granted(grant)) => return Ok(Contended::Won(grant, sent)),
                Ok(Attempt::Busy(busy)) => {
                    unanswered = None;
                    (self.told)(Some(&busy));
                    busy
                }
                Err(error) if self.bears_on(&error, *unanswered.get_or_insert(sent)) => {
                    (self.told)(None);
                    tracing::debug!(%error, "trying again");
                    soon()
                }
                Err(error) => return Err(error),
            };
            let now = clock.now();
            if self.is_over(now) {
                return Ok(Contended::Busy(busy));
            }
            let pause = self.pause(&busy, now);
            let rung = async {
                deaf = if claim.changed().await.is_err() { deaf + 1 } else { 0 };
                if deaf > 0 {
                    clock.pause(pause.min(DEAF * 2_u32.pow(deaf.min(10)))).await;
                }
                let pause = pace.after_ring(sent.until(clock.now()));
                if !pause.is_zero() {
                    clock.pause(pause).await;
                }
            };
            tokio::select! {
                biased;
                () = &mut *hung_up => return Ok(Contended::HungUp),
                () = self.engine.closing() => return Err(closed(Operation::Acquire)),
                () = rung => {}
                () = clock.pause(pause) => {}
            }
            sent = if planted(Bug::DeadlineAtFirst) { sent } else { clock.now() };
        }
    }

    fn bears_on(&self, error: &Error, unanswered: Instant) -> bool {
        let now = self.engine.clock.now();
        error.retry() != Retry::No && !self.is_over(now) && unanswered.until(now) < self.bears
    }

    fn is_over(&self, now: Instant) -> bool {
        match self.patience {
            Patience::None => true,
            Patience::Until(end) => end <= now,
            Patience::Forever => false,
        }
    }

    /// The longest wait without a bell: the store's hint, but no longer than it wants to be polled, nor than we
    /// have patience. Whoever has others ahead may look less often: of a crowd, only the first need to be quick. Spread a
    /// little, so that many who were told the same do not all come at once.
    fn pause(&self, busy: &Busy, now: Instant) -> Duration {
        let poll = self.engine.backend.info().capabilities.poll * (busy.ahead.min(CROWD) as u32 + 1);
        let hint = busy.retry_after.map_or(poll, |hint| hint.min(poll));
        let spread = hint.mul_f64(1.0 + f64::from(now.as_nanos() as u8) / 1024.0) + Duration::from_millis(1);
        match self.patience {
            Patience::Until(end) => spread.min(now.until(end)),
            _ => spread,
        }
    }
}

/// A lease that was over before we heard of it is none: nobody is handed a lock that is lost already. What the store has
/// of it is found by the next try, or withdrawn.
pub(super) fn in_time(attempt: Attempt, sent: Instant, now: Instant) -> Result<Attempt> {
    match attempt {
        Attempt::Granted(grant) if sent.believing(grant.granted) <= now => {
            let message = "the store took longer to answer than the lease lasts; use a longer ttl";
            Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, message))
        }
        attempt => Ok(attempt),
    }
}

/// After an error that may pass: try again soon.
fn soon() -> Busy {
    Busy { retry_after: Some(Duration::from_millis(100)), ..Busy::default() }
}

/// Slows a bell that rings again and again for nothing.
#[derive(Debug, Default)]
struct Pace {
    quick: u32,
}

impl Pace {
    /// A wait shorter than this was hardly one.
    const QUICK: Duration = Duration::from_millis(1);
    /// So many quick rings in a row cost nothing: one arms the bell, and some are lost races.
    const FREE: u32 = 4;
    const MOST: Duration = Duration::from_millis(128);

    /// How long to pause before the next try, after a wait of `waited`.
    fn after_ring(&mut self, waited: Duration) -> Duration {
        self.quick = if waited < Self::QUICK { self.quick + 1 } else { 0 };
        match self.quick.checked_sub(Self::FREE + 1) {
            None => Duration::ZERO,
            Some(excess) => (Self::QUICK * 2_u32.pow(excess.min(7))).min(Self::MOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_that_rings_at_once_is_slowed_and_a_real_wait_is_not() {
        let mut pace = Pace::default();
        let pauses: Vec<_> = (0..20).map(|_| pace.after_ring(Duration::from_micros(5))).collect();
        assert_eq!(pauses[..4], [Duration::ZERO; 4], "{pauses:?}");
        assert!(pauses.is_sorted() && pauses[19] == Pace::MOST, "{pauses:?}");
        assert_eq!(pace.after_ring(Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(
            pace.after_ring(Duration::ZERO),
            Duration::ZERO,
            "a real wait makes good for all before it"
        );
    }
}
