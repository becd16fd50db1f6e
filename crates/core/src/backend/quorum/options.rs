//! What a quorum is made with, and how it describes itself.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::{
    backend::{Backend, Capabilities, Guarantee, Level, StoreInfo},
    error::{Error, Operation, Result},
    time::Clock,
};

/// Fewer members than this cannot lose one and go on.
const FEWEST: usize = 3;

/// More have no use, and a listing marks each by a bit.
const MOST: usize = 64;

/// How a quorum of stores behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuorumOptions {
    /// How long a member is given for one request; 1 s unless said. For short leases it is less: an eighth of the
    /// lease, but 20 ms at least. A minority that falls mute is waited for once, for a
    /// quarter of this.
    pub member_timeout: Duration,
    /// The scheme of the URL it was opened by; `quorum` unless said.
    pub scheme: &'static str,
    /// The clock that validity is counted on: the one its clients are on.
    pub clock: Clock,
}

impl Default for QuorumOptions {
    fn default() -> Self {
        Self { member_timeout: Duration::from_secs(1), scheme: "quorum", clock: Clock::boot() }
    }
}

impl QuorumOptions {
    /// The same with another time for one request to one member.
    #[must_use]
    pub fn with_member_timeout(mut self, timeout: Duration) -> Self {
        self.member_timeout = timeout;
        self
    }

    /// The same with another scheme.
    #[must_use]
    pub fn with_scheme(mut self, scheme: &'static str) -> Self {
        self.scheme = scheme;
        self
    }

    /// The same on another clock, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// Refuses members that could not be a quorum.
pub(super) fn check(members: &[Arc<dyn Backend>]) -> Result<()> {
    if !(FEWEST..=MOST).contains(&members.len()) {
        let message =
            format!("{} stores are no quorum; give {FEWEST} to {MOST}, best an odd number", members.len());
        return Err(Error::config(Operation::Connect, message));
    }
    let mut seen = HashSet::new();
    for member in members {
        let StoreInfo { scheme, address, identity, .. } = member.info();
        let is_new = seen.insert((*scheme, address.as_str()));
        // A store that is reached by two addresses would have two votes.
        let is_itself = identity.as_deref().is_none_or(|identity| seen.insert(("", identity)));
        if !is_new || !is_itself {
            let message = format!("{address} is a store that is listed already; give each store once");
            return Err(Error::config(Operation::Connect, message));
        }
    }
    Ok(())
}

/// What these members are together: what all of them can do, and a majority can agree on.
pub(super) fn describe(members: &[Arc<dyn Backend>], options: &QuorumOptions) -> StoreInfo {
    let each = || members.iter().map(|member| &member.info().capabilities);
    let mut can = Capabilities::default();
    can.shared = each().all(|can| can.shared);
    can.detached = each().all(|can| can.detached);
    can.announce = each().any(|can| can.announce);
    (can.permits, can.fair, can.latch, can.rate, can.cells, can.cohort) = Default::default();
    can.min_ttl = each().map(|can| can.min_ttl).max().unwrap_or(can.min_ttl);
    can.max_ttl = each().map(|can| can.max_ttl).min().unwrap_or(can.max_ttl);
    can.poll = each().map(|can| can.poll).min().unwrap_or(can.poll);
    let addresses: Vec<&str> = members.iter().map(|member| member.info().address.as_str()).collect();
    let guarantee = Guarantee::new(
        Level::S2,
        "a member restarts without what it granted before that lease ends (persist every write, or keep it out for \
         the longest lease), or clocks drift apart by more than 1 %",
    );
    StoreInfo::new(options.scheme, addresses.join(","), guarantee).with_capabilities(can)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Memory, Quorum};

    fn members(count: usize) -> Vec<Arc<dyn Backend>> {
        (0..count).map(|_| Arc::new(Memory::new()) as Arc<dyn Backend>).collect()
    }

    #[test]
    fn fewer_than_three_stores_are_refused() {
        assert!(Quorum::new(members(2), QuorumOptions::default()).is_err());
        for count in 3..=7 {
            assert!(Quorum::new(members(count), QuorumOptions::default()).is_ok(), "{count}");
        }
    }

    #[test]
    fn a_store_listed_twice_is_refused() {
        let mut members = members(2);
        members.push(members[0].clone());
        let error = Quorum::new(members, QuorumOptions::default()).unwrap_err();
        assert!(error.to_string().contains("listed already"), "{error}");
    }

    #[test]
    fn a_quorum_claims_no_more_than_a_majority_can_do() {
        let quorum = Quorum::new(members(5), QuorumOptions::default()).unwrap();
        let can = quorum.info().capabilities;
        assert!(can.shared && can.detached);
        assert!(!can.permits && !can.fair && !can.latch && !can.cells);
        assert_eq!(quorum.info().guarantee.level, Level::S2);
    }
}
