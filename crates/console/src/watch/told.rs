//! A change in words for programs: what event streams and `watch -o json` tell.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Change, End, What};
use crate::view::{self, HolderView, LockView, WaiterView};

/// A change, its number and the time it was seen.
pub fn told(change: &Change, seq: u64, now: Timestamp) -> Value {
    let (what, holder, waiter, end) = match &change.what {
        What::Acquired(holder) => ("acquired", Some(holder), None, None),
        What::Ended(holder, end) => ("ended", Some(holder), None, Some(end)),
        What::Waiting(waiter) => ("waiting", None, Some(waiter), None),
        What::Left(waiter) => ("left", None, Some(waiter), None),
        What::Changed => ("changed", None, None, None),
    };
    let id = holder.map(|holder| holder.id).or(waiter.map(|waiter| waiter.id)).map(|id| id.to_string());
    let (how, broken) = match end {
        None => (None, None),
        Some(End::Released) => (Some("released"), None),
        Some(End::Expired) => (Some("expired"), None),
        Some(End::Broken(broken)) => (Some("broken"), Some(broken)),
    };
    json!({ "seq": seq, "at": view::time(now), "what": what, "name": change.name, "id": id, "how": how,
        "by": broken.map(|broken| &*broken.by), "why": broken.map(|broken| &*broken.why),
        "holder": holder.map(|holder| HolderView::of(holder, now)),
        "waiter": waiter.map(|waiter| WaiterView::of(waiter, now)),
        "lock": change.lock.as_ref().map(|lock| LockView::of(lock, now)) })
}
