//! What changed between two looks: pure, and in an order of names.

use std::{collections::HashSet, hash::Hash, sync::Arc, time::Duration};

use leasehold::backend::{Holder, LockState};

use super::{Change, End, Seen, What};

/// Looks that are further apart than this do not tell what ran out from what was renewed and released in between.
const CLOSE: Duration = Duration::from_secs(3);

/// What happened between two looks. A look that did not take in everything says nothing about names it did not see.
pub(super) fn changes(before: &Seen, after: &Seen) -> Vec<Change> {
    let between = match (before.at, after.at) {
        (Some(before), Some(after)) => after.saturating_duration_since(before),
        _ => Duration::ZERO,
    };
    let looks = Looks { before, between };
    let mut changes = Vec::new();
    for (name, now) in &after.locks {
        looks.compare(name, before.locks.get(name), Some(now), &mut changes);
    }
    for (name, was) in &before.locks {
        if after.complete && !after.locks.contains_key(name) {
            looks.compare(name, Some(was), None, &mut changes);
        }
    }
    changes
}

/// A look, and the time from it to the next.
struct Looks<'a> {
    before: &'a Seen,
    between: Duration,
}

impl Looks<'_> {
    fn compare(
        &self,
        name: &str,
        was: Option<&Arc<LockState>>,
        now: Option<&Arc<LockState>>,
        changes: &mut Vec<Change>,
    ) {
        if let (Some(was), Some(now)) = (was, now)
            && Arc::ptr_eq(was, now)
        {
            return;
        }
        let begun = changes.len();
        let mut push = |what| changes.push(Change { name: name.to_owned(), what, lock: now.cloned() });
        let (old, new) = (was.map(|was| &**was), now.map(|now| &**now));
        // What the look before did not take in may have been there then.
        let is_news = |lasts: Duration| self.before.complete || was.is_some() || lasts <= self.between;
        for holder in without(holders(old), holders(new), |one| one.id) {
            push(What::Ended(holder.clone(), self.end(holder)));
        }
        for waiter in without(waiters(old), waiters(new), |one| one.id) {
            push(What::Left(waiter.clone()));
        }
        for holder in without(holders(new), holders(old), |one| one.id).filter(|one| is_news(one.held_for)) {
            push(What::Acquired(holder.clone()));
        }
        for waiter in without(waiters(new), waiters(old), |one| one.id).filter(|one| is_news(one.waited)) {
            push(What::Waiting(waiter.clone()));
        }
        let other = old.map(|old| old.kind) != new.map(|new| new.kind);
        if changes.len() == begun && other && is_news(Duration::MAX) {
            changes.push(Change { name: name.to_owned(), what: What::Changed, lock: now.cloned() });
        }
    }

    /// A lease that could have lasted to this look was given up before. One that could not was lost, if the looks are so
    /// close that a holder who lives would have been seen to renew it: that is done thrice in a lease.
    fn end(&self, holder: &Holder) -> End {
        let lease = self.before.leases.get(&holder.id).copied().unwrap_or_default();
        match self.between {
            between if holder.remaining > between => End::Released,
            between if between < CLOSE && between * 3 < lease => End::Expired,
            _ => End::Unknown,
        }
    }
}

/// Those of `these` that are not among `others`.
fn without<'a, T, K: Eq + Hash>(
    these: &'a [T],
    others: &'a [T],
    key: impl Fn(&T) -> K,
) -> impl Iterator<Item = &'a T> {
    let others: HashSet<K> =
        if these.is_empty() { HashSet::new() } else { others.iter().map(&key).collect() };
    these.iter().filter(move |one| !others.contains(&key(one)))
}

fn holders(state: Option<&LockState>) -> &[Holder] {
    state.map_or(&[], |state| &state.holders)
}

fn waiters(state: Option<&LockState>) -> &[leasehold::backend::Waiter] {
    state.map_or(&[], |state| &state.waiters)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use leasehold::{
        ClientId, Who,
        backend::{Kind, Mode, Waiter},
    };

    use super::*;

    /// A look at one name, so many seconds after the first; with holders by number and lease, and waiters by number.
    fn look(client: ClientId, seconds: u64, holders: &[(u64, u64)], waiters: &[u64]) -> Seen {
        let (who, id) = (Arc::new(Who::here()), |serial| format!("{client}:{serial}").parse().unwrap());
        let mut state = LockState::new("n", Kind::Lock, 9);
        for (serial, lease) in holders {
            let mut holder = Holder::new(id(*serial), Mode::Exclusive, 9, who.clone());
            holder.remaining = Duration::from_secs(*lease);
            state.holders.push(holder);
        }
        state.waiters =
            waiters.iter().map(|one| Waiter::new(id(*one), Mode::Exclusive, who.clone())).collect();
        let mut seen = Seen { complete: true, ..Seen::default() };
        if !holders.is_empty() || !waiters.is_empty() {
            seen.locks.insert("n".to_owned(), Arc::new(state));
        }
        seen.at = Some(start() + Duration::from_secs(seconds));
        seen.take_leases(None);
        seen
    }

    fn start() -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now)
    }

    fn serial(id: leasehold::ClaimId) -> String {
        id.to_string().rsplit(':').next().unwrap().to_owned()
    }

    fn told(before: &Seen, after: &Seen) -> Vec<String> {
        let one = |change: Change| {
            let left = if change.lock.is_some() { "" } else { ", free" };
            match change.what {
                What::Acquired(holder) => format!("acquired {}{left}", serial(holder.id)),
                What::Ended(holder, end) => format!("ended {} {end:?}{left}", serial(holder.id)),
                What::Waiting(waiter) => format!("waiting {}{left}", serial(waiter.id)),
                What::Left(waiter) => format!("left {}{left}", serial(waiter.id)),
                What::Changed => "changed".to_owned(),
            }
        };
        changes(before, after).into_iter().map(one).collect()
    }

    #[test]
    fn a_lock_that_changes_hands_is_told_in_the_order_of_things() {
        let client = ClientId::random();
        let before = look(client, 0, &[(1, 20)], &[2]);
        let after = look(client, 1, &[(2, 30)], &[3]);
        assert_eq!(told(&before, &after), ["ended 1 Released", "left 2", "acquired 2", "waiting 3"]);
        assert!(told(&before, &before).is_empty());
    }

    #[test]
    fn a_lease_that_had_run_out_is_a_loss() {
        let client = ClientId::random();
        let mut before = look(client, 0, &[(1, 2)], &[]);
        before.take_leases(Some(&look(client, 0, &[(1, 30)], &[])));
        assert_eq!(told(&before, &look(client, 1, &[], &[])), ["ended 1 Released, free"]);
        assert_eq!(told(&before, &look(client, 2, &[], &[])), ["ended 1 Expired, free"]);
    }

    #[test]
    fn a_lease_that_may_have_been_renewed_between_two_looks_is_not_a_loss() {
        let client = ClientId::random();
        let brief = look(client, 0, &[(1, 2)], &[]);
        assert_eq!(told(&brief, &look(client, 2, &[], &[])), ["ended 1 Unknown, free"], "a brief lease");
        let mut rare = look(client, 0, &[(1, 8)], &[]);
        rare.take_leases(Some(&look(client, 0, &[(1, 60)], &[])));
        assert_eq!(told(&rare, &look(client, 10, &[], &[])), ["ended 1 Unknown, free"], "rare looks");
    }

    #[test]
    fn what_a_look_missed_is_no_news_when_the_next_sees_it() {
        let client = ClientId::random();
        let mut before = look(client, 0, &[], &[]);
        before.complete = false;
        let mut after = look(client, 1, &[(1, 20), (2, 20)], &[3]);
        let mut state = (*after.locks["n"]).clone();
        state.holders[0].held_for = Duration::from_secs(60);
        state.waiters[0].waited = Duration::from_secs(60);
        after.locks.insert("n".to_owned(), Arc::new(state));
        assert_eq!(told(&before, &after), ["acquired 2"]);
        before.complete = true;
        assert_eq!(told(&before, &after), ["acquired 1", "acquired 2", "waiting 3"]);
    }

    #[test]
    fn what_was_not_looked_at_is_not_told() {
        let client = ClientId::random();
        let before = look(client, 0, &[(1, 2)], &[]);
        let mut after = look(client, 1, &[], &[]);
        after.complete = false;
        assert!(told(&before, &after).is_empty());
    }

    #[test]
    fn a_name_that_becomes_something_else_is_told() {
        let client = ClientId::random();
        let (before, mut after) = (look(client, 0, &[], &[2]), look(client, 1, &[], &[2]));
        let mut state = (*after.locks["n"]).clone();
        state.kind = Kind::Latch { count: 3 };
        after.locks.insert("n".to_owned(), Arc::new(state));
        assert_eq!(told(&before, &after), ["changed"]);
    }
}
