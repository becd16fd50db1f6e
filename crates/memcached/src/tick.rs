//! Time on a server that counts whole seconds.
//!
//! An item that ends on a date tells the server's time by how long it still has: the date does not change, so the item
//! may be evicted and made anew, and tells the same. memcached reckons on a monotonic clock from the time it was started.
//!
//! What it says is old: it is rounded down to a second, and moves on by a timer of its own once a second, so it may be
//! up to two seconds behind. A lease that is granted by an old time and ended by a fresh one would be shorter than its
//! holder believes. So every lease is made longer by [`LAG`] in the store, and its holder told the length it asked for.
//!
//! A server that was stopped for longer may serve a request by a time that is as old as that before its clock moves on.
//! Nothing helps against that but a better store.

use std::{sync::Arc, time::Duration};

use leasehold_core::backend::{
    Attempt, ClaimSpec, Grant, Holder, Renew, Renewal,
    record::{Answer, Moment, Record, Step},
};

/// How far behind the server's time may be.
pub(crate) const LAG: Duration = Duration::from_secs(2);

/// The longest time that memcached takes for a length; longer ones are dates to it.
const LONGEST: u64 = 30 * 24 * 3600;

/// The date that the clock's item ends on: the last that memcached's numbers reach.
pub(crate) const ERA: u64 = i32::MAX as u64;

/// How many fences there are for a name in a second: more than a server can grant.
const FENCES: u32 = 20;

/// The server's time, in seconds of the era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u64);

impl Tick {
    /// The time at which so many seconds are left until the end of the era; `None` if there is no such time.
    pub(crate) fn until_the_end(seconds: u64) -> Option<Self> {
        ERA.checked_sub(seconds).map(Self)
    }

    pub(crate) fn moment(self) -> Moment {
        Moment(self.0 * 1_000_000)
    }

    /// What the fence of a name that is not known starts from, and the version of such a cell.
    pub(crate) fn floor(self) -> u64 {
        self.0 << FENCES
    }

    /// When the floor is above this fence.
    fn over(fence: u64) -> Self {
        Self((fence >> FENCES) + 1)
    }

    /// What to give memcached for an item that must be there until this moment, if not longer.
    pub(crate) fn life_until(self, end: Moment) -> u64 {
        let seconds = Duration::from_micros(end.0).as_secs() + 1;
        let left = seconds.saturating_sub(self.0) + LAG.as_secs();
        if left < LONGEST { left } else { seconds.min(ERA) }
    }

    /// The same for an item with this record: what is in it must be kept, and its fence for as long as a new record
    /// would begin below it. Zero is for ever.
    pub(crate) fn life_of(self, record: &Record) -> u64 {
        record.ends().map_or(0, |end| self.life_until(end.max(Self::over(record.fence()).moment())))
    }
}

/// The step with its lease made longer.
pub(crate) fn prolonged(step: Step) -> Step {
    match step {
        Step::Attempt { spec, waiting } => {
            let spec = ClaimSpec { ttl: spec.ttl + LAG, ..(*spec).clone() };
            Step::Attempt { spec: Arc::new(spec), waiting }
        }
        Step::Renew(renew) => Step::Renew(Renew { ttl: renew.ttl + LAG, ..renew }),
        other => other,
    }
}

/// The answer with the lease that may be believed.
pub(crate) fn shortened(answer: Answer) -> Answer {
    match answer {
        Answer::Attempt(Attempt::Granted(grant)) => {
            Answer::Attempt(Attempt::Granted(Grant { granted: grant.granted.saturating_sub(LAG), ..grant }))
        }
        Answer::Attempt(Attempt::Busy(mut busy)) => {
            busy.holders.iter_mut().for_each(shorten);
            Answer::Attempt(Attempt::Busy(busy))
        }
        Answer::Renewal(Renewal::Renewed { granted }) => {
            Answer::Renewal(Renewal::Renewed { granted: granted.saturating_sub(LAG) })
        }
        other => other,
    }
}

/// What is shown of a lease is what its holder believes.
pub(crate) fn shorten(holder: &mut Holder) {
    holder.remaining = holder.remaining.saturating_sub(LAG);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000)
    }

    #[test]
    fn an_item_outlives_what_is_in_it_and_no_length_is_taken_for_a_date() {
        let now = Tick::until_the_end(ERA - 1_800_000_000).unwrap();
        assert_eq!(now.moment(), at(1_800_000_000));
        assert_eq!(now.life_until(at(1_800_000_010)), 13);
        assert_eq!(now.life_until(at(5)), 2, "what is over is kept for a moment, not for ever");
        let far = now.life_until(at(1_800_000_000 + LONGEST));
        assert_eq!(far, 1_800_000_001 + LONGEST, "beyond thirty days it is a date");
    }

    #[test]
    fn a_fence_is_kept_until_the_floor_is_above_it() {
        let now = Tick::until_the_end(ERA - 1_800_000_000).unwrap();
        let mut fence = now.floor();
        assert_eq!(now.life_of(&Record::new(fence)), 4);
        fence += 60 << FENCES;
        assert_eq!(now.life_of(&Record::new(fence)), 64);
        assert!(Tick::over(fence).floor() > fence);
    }
}
