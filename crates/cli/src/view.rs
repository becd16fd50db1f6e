//! What is known of a name, as listings show it: the JSON form, whose shape is a promise to programs.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leasehold::backend::{Holder, Kind, LockState, Mode, StoreInfo, Waiter};
use serde::Serialize;

/// One name and everything known of it.
#[derive(Debug, Serialize)]
pub(crate) struct View<'a> {
    name: &'a str,
    kind: Option<&'static str>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    holders: Vec<HolderView<'a>>,
    waiters: Vec<WaiterView<'a>>,
    store: &'a str,
}

#[derive(Debug, Serialize)]
struct HolderView<'a> {
    id: String,
    #[serde(flatten)]
    who: WhoView<'a>,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permits: Option<u32>,
    since: String,
    expires_in_ms: u64,
    fence: u64,
    count: u32,
}

#[derive(Debug, Serialize)]
struct WaiterView<'a> {
    id: String,
    #[serde(flatten)]
    who: WhoView<'a>,
    mode: &'static str,
    since: String,
    fair: bool,
}

#[derive(Debug, Serialize)]
struct WhoView<'a> {
    owner: String,
    host: &'a str,
    pid: u32,
    user: &'a str,
    program: &'a str,
    label: Option<&'a str>,
}

impl<'a> View<'a> {
    /// A name in use.
    pub(crate) fn of(state: &'a LockState, store: &'a StoreInfo, now: Timestamp) -> Self {
        let (permits, count) = match state.kind {
            Kind::Semaphore { of } => (Some(of), None),
            Kind::Latch { count } => (None, Some(count)),
            _ => (None, None),
        };
        Self {
            name: &state.name,
            kind: Some(kind(state.kind)),
            state: condition(state),
            permits,
            count,
            holders: state.holders.iter().map(|holder| HolderView::of(holder, now)).collect(),
            waiters: state.waiters.iter().map(|waiter| WaiterView::of(waiter, now)).collect(),
            store: &store.address,
        }
    }

    /// A name that nobody uses.
    pub(crate) fn free(name: &'a str, store: &'a StoreInfo) -> Self {
        let (holders, waiters) = (Vec::new(), Vec::new());
        let (permits, count) = (None, None);
        Self { name, kind: None, state: "free", permits, count, holders, waiters, store: &store.address }
    }
}

impl<'a> HolderView<'a> {
    fn of(holder: &'a Holder, now: Timestamp) -> Self {
        let permits = match holder.mode {
            Mode::Permits { take, .. } => Some(take.get()),
            _ => None,
        };
        Self {
            id: holder.id.to_string(),
            who: WhoView::of(&holder.who, holder.label.as_deref()),
            mode: mode(holder.mode),
            permits,
            since: since(now, holder.held_for),
            expires_in_ms: holder.remaining.as_millis() as u64,
            fence: holder.fence,
            count: holder.count,
        }
    }
}

impl<'a> WaiterView<'a> {
    fn of(waiter: &'a Waiter, now: Timestamp) -> Self {
        Self {
            id: waiter.id.to_string(),
            who: WhoView::of(&waiter.who, waiter.label.as_deref()),
            mode: mode(waiter.mode),
            since: since(now, waiter.waited),
            fair: waiter.fair,
        }
    }
}

impl<'a> WhoView<'a> {
    fn of(who: &'a leasehold::Who, label: Option<&'a str>) -> Self {
        let owner = who.client.to_string();
        Self { owner, host: &who.host, pid: who.pid, user: &who.user, program: &who.program, label }
    }
}

/// What a name is in use as, in a word.
pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Lock => "lock",
        Kind::Semaphore { .. } => "semaphore",
        Kind::Latch { .. } => "latch",
        _ => "other",
    }
}

/// How a name is held, in a word.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
        _ => "other",
    }
}

/// A length of time as people read it: seconds with one decimal while they are few, whole ones later.
pub(crate) fn brief(duration: Duration) -> String {
    let unit = match duration.as_secs() {
        0 => 1,
        1..=9 => 100,
        _ => 1000,
    };
    let millis = duration.as_millis() as u64 / unit * unit;
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

fn condition(state: &LockState) -> &'static str {
    match state.kind {
        Kind::Latch { count: 0 } => "open",
        Kind::Latch { .. } => "closed",
        _ if state.holders.is_empty() => "free",
        _ => "held",
    }
}

/// The wall-clock time this long ago. Stores tell ages, not times, so no two clocks are ever compared.
fn since(now: Timestamp, age: Duration) -> String {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    let then = now.saturating_sub(age).unwrap_or(Timestamp::MIN);
    format!("{then:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_as_people_read_them() {
        let text = |millis| brief(Duration::from_millis(millis));
        assert_eq!(text(0), "0s");
        assert_eq!(text(7), "7ms");
        assert_eq!(text(1250), "1s 200ms");
        assert_eq!(text(61_999), "1m 1s");
    }

    #[test]
    fn times_are_counted_back_from_now() {
        let now: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(since(now, Duration::from_millis(5678)), "2026-01-02T03:04:00.000Z");
        assert_eq!(since(now, Duration::ZERO), "2026-01-02T03:04:05.678Z");
        assert!(since(now, Duration::MAX).starts_with('-'));
    }
}
