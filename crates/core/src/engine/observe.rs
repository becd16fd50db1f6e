//! What can be seen of locks from outside: spans and events for `tracing`, numbers for `metrics`.
//!
//! Every acquisition is a span; what becomes of a hold are events. All of them bear the target [`TARGET`]. What others wrote
//! (a reason, an error) goes out as a value of a field and never as part of a message: whoever prints it escapes it.
//! While nobody listens, the clock is not asked and nothing is made. Nothing here is called under a lock of ours, for nobody
//! knows how long those who listen take.

use tracing::{Span, field::Empty};

use super::{
    acquire::Acquired,
    hold::Hold,
    measure::{MEASURED, Series},
    time::{Clock, Instant},
    won::Won,
};
use crate::{
    backend::{ClaimSpec, Loss, Mode, Renewal},
    error::{Error, Result},
};

/// What all spans and events of locks bear.
const TARGET: &str = "leasehold";

/// An acquisition that is under way. What became of it is told when this goes.
pub(super) struct Asking<'a> {
    clock: &'a Clock,
    span: Span,
    /// Only if anybody wants to know.
    begun: Option<Instant>,
    mode: Mode,
    series: Series,
    outcome: &'static str,
}

impl<'a> Asking<'a> {
    pub(super) fn begin(clock: &'a Clock, spec: &ClaimSpec, series: Series) -> Self {
        let span = asking(spec);
        let begun = (MEASURED || !span.is_disabled()).then(|| clock.now());
        Self { clock, span, begun, mode: spec.mode, series, outcome: "abandoned" }
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(super) fn answered(mut self, answer: &Result<Acquired>) {
        self.outcome = match answer {
            Ok(Acquired::Held(won)) => {
                self.span.record("fence", won.fence());
                "acquired"
            }
            Ok(Acquired::Busy(_)) => "busy",
            Err(_) => "failed",
        };
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(begun) = self.begun else { return };
        let waited = begun.until(self.clock.now());
        self.span.record("outcome", self.outcome).record("waited", tracing::field::debug(waited));
        self.series.asked(self.mode, self.outcome, waited);
    }
}

/// An acquisition that took no time: all of it at once.
pub(super) fn acquired_now(won: &Won) {
    let Some(hold) = won.hold() else { return };
    let mode = hold.spec.mode;
    let span = asking(&hold.spec);
    if MEASURED || !span.is_disabled() {
        let waited = hold.begun.until(hold.engine.clock.now());
        span.record("fence", won.fence()).record("outcome", "acquired");
        span.record("waited", tracing::field::debug(waited));
        hold.series.asked(mode, "acquired", waited);
    }
}

fn asking(spec: &ClaimSpec) -> Span {
    tracing::debug_span!(
        target: TARGET,
        "acquire",
        name = spec.key.name(),
        kind = kind(spec.mode),
        outcome = Empty,
        waited = Empty,
        fence = Empty,
    )
}

/// A lock was won.
pub(super) fn granted(hold: &Hold) {
    if is_held(hold) {
        tracing::debug!(
            target: TARGET,
            name = hold.spec.key.name(),
            kind = kind(hold.spec.mode),
            fence = hold.fence,
            waited = ?hold.waited,
            "granted"
        );
    }
}

/// What was won is the lead of an election.
pub(super) fn leads(hold: &Hold) {
    hold.lead.begin(&hold.series, hold.spec.mode);
    // Begin, then look: a loss in between has found nothing to end.
    if hold.has_ended() {
        hold.lead.end();
    }
}

/// Its holder has it no more, whatever the store will say to that.
pub(super) fn let_go(hold: &Hold) {
    hold.lead.end();
}

/// Its holder let go of what it had, whether or not the store has heard of it.
pub(super) fn released(hold: &Hold) {
    if hold.known_loss().is_some() || !is_held(hold) || !hold.ends() {
        return;
    }
    tracing::debug!(target: TARGET, name = hold.spec.key.name(), fence = hold.fence, "released");
    ended(hold, "released");
}

/// A lock was lost. What was given back before that is lost to nobody.
pub(super) fn lost(hold: &Hold, loss: &Loss) {
    let is_news = hold.ends();
    hold.lead.end();
    if !is_held(hold) || !is_news {
        return;
    }
    let (name, fence, cause) = (hold.spec.key.name(), hold.fence, loss.word());
    match loss {
        Loss::Broken(broken) => {
            let (by, why) = (&*broken.by, &*broken.why);
            tracing::warn!(target: TARGET, name, fence, cause, by, why, "broken");
        }
        // Whoever shuts a client down knows.
        Loss::Shutdown => tracing::info!(target: TARGET, name, fence, cause, "lost"),
        _ => tracing::warn!(target: TARGET, name, fence, cause, "lost"),
    }
    hold.series.lost(hold.spec.mode, cause);
    ended(hold, cause);
}

/// A lease was renewed, or the store said that there is none.
pub(super) fn renewed(hold: &Hold, outcome: &'static str) {
    hold.series.renewed(hold.spec.mode, outcome);
}

/// The keeper was answered. Only what it asks by itself was due at a time.
pub(super) fn heard(hold: &Hold, answer: &Result<Renewal>) {
    if MEASURED && hold.renews && matches!(answer, Ok(Renewal::Renewed { .. })) {
        hold.series.lagged(hold.spec.mode, hold.renewal_due.lag(hold.engine.clock.now()));
    }
}

/// A renewal failed; the first in a row puts the hold in doubt.
pub(super) fn renewal_failed(hold: &Hold, error: &Error, is_first: bool) {
    let (name, fence) = (hold.spec.key.name(), hold.fence);
    if is_first {
        tracing::warn!(target: TARGET, name, fence, error = &*error.to_string(), "in doubt");
    } else {
        tracing::debug!(target: TARGET, name, fence, error = &*error.to_string(), "still in doubt");
    }
    renewed(hold, "failed");
}

/// How a lock is held, in a word.
pub(super) fn kind(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
        Mode::Open => "latch",
    }
}

fn ended(hold: &Hold, end: &'static str) {
    if MEASURED {
        // Whoever lets go late held it no longer than its lease.
        let now = hold.engine.clock.now().min(hold.deadline());
        hold.series.held(hold.spec.mode, end, hold.begun.until(now));
    }
}

/// An open latch is held by nobody.
fn is_held(hold: &Hold) -> bool {
    hold.spec.mode != Mode::Open
}
