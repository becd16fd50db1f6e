//! What people see of a record.

use super::{Held, Moment, Record, Surroundings, Waiting};
use crate::backend::{Holder, LockState, Waiter};

impl Record {
    /// Everything known of the name at this moment; `None` if it is free. The dead are not shown.
    pub fn view(&self, name: &str, around: &Surroundings<'_>) -> Option<LockState> {
        let now = around.now;
        let mut current = self.clone();
        current.expire(now);
        current.holders.retain(|held| held.person.lives(around));
        current.waiters.retain(|waiting| waiting.person.lives(around));
        let mut state = LockState::new(name, current.kind()?, current.fence);
        state.holders = current.holders.iter().map(|held| held.view(now)).collect();
        state.waiters = current.waiters.iter().map(|waiting| waiting.view(now)).collect();
        state.waiters.sort_by_key(|waiter| !waiter.fair);
        Some(state)
    }
}

impl Held {
    pub(super) fn view(&self, now: Moment) -> Holder {
        let mut holder = Holder::new(self.id, self.mode, self.fence, self.person.who.clone());
        holder.count = self.count;
        holder.held_for = now.since(self.since);
        holder.remaining = self.expires.since(now);
        holder.label.clone_from(&self.person.label);
        holder.location.clone_from(&self.person.location);
        holder
    }
}

impl Waiting {
    fn view(&self, now: Moment) -> Waiter {
        let mut waiter = Waiter::new(self.id, self.mode, self.person.who.clone());
        waiter.fair = self.fair;
        waiter.waited = now.since(self.since);
        waiter.label.clone_from(&self.person.label);
        waiter.location.clone_from(&self.person.location);
        waiter
    }
}
