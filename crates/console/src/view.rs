//! What is known of a name, as programs get it: the JSON shapes, which are a promise.
//!
//! Stores tell ages and remainders, never times; a time here is the server's own clock minus an age, so no two clocks
//! are ever compared. A fence is there as a number and as text: JavaScript loses digits of large numbers.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leasehold::{
    Past, Who,
    backend::{Finding, Holder, Kind, LockState, Mode, Severity, Waiter},
};
use serde::Serialize;

/// One name and everything known of it.
#[derive(Clone, Debug, Serialize)]
pub struct LockView {
    name: String,
    kind: Option<&'static str>,
    state: &'static str,
    permits: Option<u32>,
    count: Option<u64>,
    fence: Option<u64>,
    fence_text: Option<String>,
    holders: Vec<HolderView>,
    waiters: Vec<WaiterView>,
}

/// One acquisition that is held.
#[derive(Clone, Debug, Serialize)]
pub struct HolderView {
    id: String,
    #[serde(flatten)]
    who: WhoView,
    label: Option<String>,
    location: Option<String>,
    mode: &'static str,
    permits: Option<u32>,
    since: String,
    held_ms: u64,
    expires_in_ms: u64,
    fence: u64,
    fence_text: String,
    count: u32,
}

/// One contender that waits.
#[derive(Clone, Debug, Serialize)]
pub struct WaiterView {
    id: String,
    #[serde(flatten)]
    who: WhoView,
    label: Option<String>,
    location: Option<String>,
    mode: &'static str,
    permits: Option<u32>,
    since: String,
    waited_ms: u64,
    fair: bool,
}

/// One hold that is over.
#[derive(Clone, Debug, Serialize)]
pub struct PastView {
    id: String,
    #[serde(flatten)]
    who: WhoView,
    label: Option<String>,
    location: Option<String>,
    mode: &'static str,
    permits: Option<u32>,
    fence: u64,
    fence_text: String,
    waited_ms: u64,
    held_ms: u64,
    how: String,
    by: Option<String>,
    why: Option<String>,
    ended_at: String,
}

/// The process behind it, as it described itself.
#[derive(Clone, Debug, Serialize)]
pub struct WhoView {
    owner: String,
    host: String,
    pid: u32,
    user: String,
    program: String,
}

/// One thing found by examining a store.
#[derive(Clone, Debug, Serialize)]
pub struct FindingView {
    severity: &'static str,
    topic: &'static str,
    what: String,
    why: Option<String>,
    remedy: Option<String>,
    command: Option<String>,
}

impl LockView {
    /// A name in use.
    pub fn of(state: &LockState, now: Timestamp) -> Self {
        Self::up_to(usize::MAX, state, now)
    }

    /// A name in use, with no more than so many of its holders and of those who wait.
    pub(crate) fn up_to(most: usize, state: &LockState, now: Timestamp) -> Self {
        let (permits, count) = match state.kind {
            Kind::Semaphore { of } => (Some(of), None),
            Kind::Latch { count } => (None, Some(count)),
            _ => (None, None),
        };
        Self {
            name: state.name.clone(),
            kind: Some(kind(state.kind)),
            state: condition(state),
            permits,
            count,
            fence: Some(state.fence),
            fence_text: Some(state.fence.to_string()),
            holders: state.holders.iter().take(most).map(|holder| HolderView::of(holder, now)).collect(),
            waiters: state.waiters.iter().take(most).map(|waiter| WaiterView::of(waiter, now)).collect(),
        }
    }

    /// A name that nobody uses.
    pub fn free(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: None,
            state: "free",
            permits: None,
            count: None,
            fence: None,
            fence_text: None,
            holders: Vec::new(),
            waiters: Vec::new(),
        }
    }

    /// A name, in use or not.
    pub fn of_any(name: &str, state: Option<&LockState>, now: Timestamp) -> Self {
        state.map_or_else(|| Self::free(name), |state| Self::of(state, now))
    }
}

impl HolderView {
    /// A holder, as of now.
    pub fn of(holder: &Holder, now: Timestamp) -> Self {
        Self {
            id: holder.id.to_string(),
            who: WhoView::of(&holder.who),
            label: text(holder.label.as_deref()),
            location: holder.location.as_ref().map(ToString::to_string),
            mode: mode(holder.mode),
            permits: permits(holder.mode),
            since: since(now, holder.held_for),
            held_ms: millis(holder.held_for),
            expires_in_ms: millis(holder.remaining),
            fence: holder.fence,
            fence_text: holder.fence.to_string(),
            count: holder.count,
        }
    }
}

impl WaiterView {
    /// A waiter, as of now.
    pub fn of(waiter: &Waiter, now: Timestamp) -> Self {
        Self {
            id: waiter.id.to_string(),
            who: WhoView::of(&waiter.who),
            label: text(waiter.label.as_deref()),
            location: waiter.location.as_ref().map(ToString::to_string),
            mode: mode(waiter.mode),
            permits: permits(waiter.mode),
            since: since(now, waiter.waited),
            waited_ms: millis(waiter.waited),
            fair: waiter.fair,
        }
    }
}

impl PastView {
    /// A hold that is over, as its holder told.
    pub fn of(past: &Past) -> Self {
        let ended = i64::try_from(past.ended).ok().and_then(|ended| Timestamp::from_millisecond(ended).ok());
        Self {
            id: past.id.to_string(),
            who: WhoView::of(&past.who),
            label: text(past.label.as_deref()),
            location: past.location.as_ref().map(ToString::to_string),
            mode: mode(past.mode),
            permits: permits(past.mode),
            fence: past.fence,
            fence_text: past.fence.to_string(),
            waited_ms: past.waited,
            held_ms: past.held,
            how: past.how.to_string(),
            by: text(past.by.as_deref()),
            why: text(past.why.as_deref()),
            ended_at: time(ended.unwrap_or_default()),
        }
    }
}

impl WhoView {
    /// The process behind a client.
    pub fn of(who: &Who) -> Self {
        Self {
            owner: who.client.to_string(),
            host: who.host.to_string(),
            pid: who.pid,
            user: who.user.to_string(),
            program: who.program.to_string(),
        }
    }
}

impl FindingView {
    /// A finding.
    pub fn of(finding: &Finding) -> Self {
        let owned = |text: &Option<std::borrow::Cow<'static, str>>| text.as_deref().map(str::to_owned);
        Self {
            severity: severity(finding.severity),
            topic: finding.topic,
            what: finding.what.clone().into_owned(),
            why: owned(&finding.why),
            remedy: owned(&finding.remedy),
            command: finding.command.clone(),
        }
    }
}

/// How much a finding matters, in a word.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Good => "good",
        Severity::Note => "note",
        Severity::Warning => "warning",
        _ => "danger",
    }
}

/// What a name is in use as, in a word.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Lock => "lock",
        Kind::Semaphore { .. } => "semaphore",
        Kind::Latch { .. } => "latch",
        _ => "other",
    }
}

/// How a name is held, in a word.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
        _ => "other",
    }
}

/// A time as programs read it.
pub fn time(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// The time of this clock that was so long ago.
pub fn since(now: Timestamp, age: Duration) -> String {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    time(now.saturating_sub(age).unwrap_or(Timestamp::MIN))
}

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn condition(state: &LockState) -> &'static str {
    match state.kind {
        Kind::Latch { count: 0 } => "open",
        Kind::Latch { .. } => "closed",
        _ if state.holders.is_empty() => "free",
        _ => "held",
    }
}

fn permits(mode: Mode) -> Option<u32> {
    match mode {
        Mode::Permits { take, .. } => Some(take.get()),
        _ => None,
    }
}

fn text(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_back_from_now() {
        let now: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(since(now, Duration::from_millis(5678)), "2026-01-02T03:04:00.000Z");
        assert_eq!(since(now, Duration::ZERO), "2026-01-02T03:04:05.678Z");
        assert!(since(now, Duration::MAX).starts_with('-'));
    }
}
