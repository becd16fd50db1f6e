//! A change in words for programs: what event streams and `watch -o json` tell.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Change, End, What};
use crate::view::{self, HolderView, LockView, WaiterView};

/// So many holders and so many who wait are told of the lock; how many there are is told beside it.
const SHOWN: usize = 32;

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
        Some(End::Unknown) => (Some("unknown"), None),
        Some(End::Broken(broken)) => (Some("broken"), Some(broken)),
    };
    json!({ "seq": seq, "at": view::time(now), "what": what, "name": change.name, "id": id, "how": how,
        "by": broken.map(|broken| &*broken.by), "why": broken.map(|broken| &*broken.why),
        "holder": holder.map(|holder| HolderView::of(holder, now)),
        "waiter": waiter.map(|waiter| WaiterView::of(waiter, now)),
        "lock": change.lock.as_ref().map(|lock| LockView::up_to(SHOWN, lock, now)),
        "holders": change.lock.as_ref().map_or(0, |lock| lock.holders.len()),
        "waiters": change.lock.as_ref().map_or(0, |lock| lock.waiters.len()) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use leasehold::{
        ClientId, Who,
        backend::{Holder, Kind, LockState, Mode},
    };

    use super::*;

    #[test]
    fn a_change_of_what_very_many_hold_is_told_with_a_few_of_them_and_their_number() {
        let (client, who) = (ClientId::random(), Arc::new(Who::here()));
        let mut state = LockState::new("n", Kind::Lock, 9);
        let holder = |serial: u32| {
            let id = format!("{client}:{serial}").parse().unwrap();
            Holder::new(id, Mode::Shared, 9, who.clone())
        };
        state.holders = (1..=1000).map(holder).collect();
        let what = What::Acquired(state.holders[999].clone());
        let change = Change { name: "n".to_owned(), what, lock: Some(Arc::new(state)) };
        let told = told(&change, 1, Timestamp::now());
        assert_eq!(told["lock"]["holders"].as_array().unwrap().len(), 32);
        assert_eq!((&told["holders"], &told["waiters"]), (&1000.into(), &0.into()));
        assert_eq!(told["id"], format!("{client}:1000"));
    }
}
