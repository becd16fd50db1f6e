//! What is known of a name, as listings show it: the JSON form is the server's own, with the store beside it.

use std::time::Duration;

use jiff::Timestamp;
use leasehold::backend::{LockState, StoreInfo};
use leasehold_console::view::{LockView, PastView};
use serde::Serialize;

pub(crate) use leasehold_console::view::{kind, mode};

/// One name and everything known of it.
#[derive(Debug, Serialize)]
pub(crate) struct View<'a> {
    #[serde(flatten)]
    lock: LockView,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<PastView>>,
    store: &'a str,
}

impl<'a> View<'a> {
    /// A name in use.
    pub(crate) fn of(state: &LockState, store: &'a StoreInfo, now: Timestamp) -> Self {
        Self { lock: LockView::of(state, now), history: None, store: &store.address }
    }

    /// A name that nobody uses.
    pub(crate) fn free(name: &str, store: &'a StoreInfo) -> Self {
        Self { lock: LockView::free(name), history: None, store: &store.address }
    }

    /// The same with its last holds.
    pub(crate) fn with_history(mut self, history: &[leasehold::Past]) -> Self {
        self.history = Some(history.iter().map(PastView::of).collect());
        self
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
}
