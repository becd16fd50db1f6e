//! What came of one store's runs: counts, violations, measures. Rounds add up.

use std::collections::BTreeMap;

use leasehold::backend::Guarantee;
use leasehold_testkit::history::{Act, Belief, Event, LostUpdate, Notices, Order, Outage, Phase, Verdict};

use crate::packs::Promise;

/// At most so many violations of a round are kept in words.
const SAMPLES: usize = 20;

/// The sum of a store's rounds.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Report {
    /// Server and version.
    pub version: String,
    /// What the store itself says its locks are worth: the level, and what would break them.
    pub claim: Option<Guarantee>,
    /// How to do the same again.
    pub command: String,
    /// How many rounds, with which seeds.
    pub seeds: Vec<u64>,
    /// Rounds that were given up, by no fault of the store's locks, and why. They were judged up to there.
    pub given_up: Vec<String>,
    /// Seconds under faults.
    pub seconds: u64,
    /// Acquires and releases answered: it happened.
    pub done: u64,
    /// Acquires and releases answered: it did not happen.
    pub failed: u64,
    /// Acquires and releases whose outcome nobody knows.
    pub unknown: u64,
    /// Locks granted.
    pub grants: u64,
    /// Writes the register took, and those it refused for their fence.
    pub writes: [u64; 2],
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Pairs that believed at once what excludes each other.
    pub overlaps: u64,
    /// Updates lost in the plain cell.
    pub plain_lost: u64,
    /// Updates lost in the fenced cell.
    pub fenced_lost: u64,
    /// Fences out of order.
    pub fence_faults: u64,
    /// Holders told that they hold after their deadline.
    pub false_held: u64,
    /// Locks that were returned after their own deadline.
    pub stillborn: u64,
    /// Unavailability and recovery by kind of fault, in nanoseconds.
    pub outages: BTreeMap<String, Vec<[u64; 2]>>,
    /// The longest unavailability by kind of fault, and of which name.
    pub slowest: BTreeMap<String, (u64, String)>,
    /// How long after the deadline a loss was told, in nanoseconds.
    pub notices: Vec<u64>,
    /// Stretches of a name's history that a single lock could have gone through; that none could; that took too long.
    pub orders: [u64; 3],
    /// Names that somebody waited for and nobody got any more after all faults were healed, by round.
    pub stuck: Vec<String>,
    /// Rounds in which nobody got any lock any more after all faults were healed.
    pub dead: u64,
    /// What was left behind.
    pub leaks: Vec<String>,
    /// Errors that workers met, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Violations in words.
    pub samples: Vec<String>,
}

impl Report {
    /// Adds what the checkers found.
    pub fn judge(&mut self, verdict: &Verdict) {
        self.grants += verdict.grants as u64;
        self.overlaps += verdict.overlaps.len() as u64;
        self.fence_faults += verdict.fences.len() as u64;
        let [plain, fenced] = ["plain/", "fenced/"].map(|cells| lost(&verdict.updates, cells));
        self.plain_lost += plain;
        self.fenced_lost += fenced;
        let overlaps = verdict.overlaps.iter().map(|overlap| format!("overlap: {overlap}"));
        let disorder = verdict.fences.iter().map(|fault| format!("fence: {fault}"));
        let updates = verdict.updates.iter().filter(|update| cell(update).starts_with("fenced/"));
        let updates = updates.map(|update| format!("lost update: {update}"));
        self.samples
            .extend(overlaps.take(SAMPLES).chain(disorder.take(SAMPLES)).chain(updates.take(SAMPLES)));
    }

    /// Adds what the search for an order found.
    pub fn order(&mut self, order: Order) {
        let found = [order.found, order.impossible, order.unknown];
        self.orders = [0, 1, 2].map(|which| self.orders[which] + found[which] as u64);
    }

    /// Adds how losses were told.
    pub fn notice(&mut self, notices: Notices) {
        self.false_held += notices.false_held.len() as u64;
        self.stillborn += notices.stillborn as u64;
        let samples = notices.false_held.iter().take(SAMPLES);
        self.samples.extend(samples.map(|held| format!("told held after the deadline: {held:?}")));
        self.notices.extend(notices.late);
    }

    /// Adds what the faults did.
    pub fn measure(&mut self, outages: Vec<Outage>) {
        for Outage { kind, name, unavailable, recovery } in outages {
            *self.faults.entry(kind.clone()).or_default() += 1;
            let slowest = self.slowest.entry(kind.clone()).or_default();
            *slowest = (unavailable, name).max(std::mem::take(slowest));
            self.outages.entry(kind).or_default().push([unavailable, recovery]);
        }
    }

    /// Adds which names nobody got any more after all faults were healed, and whether any was got at all.
    pub fn revive(&mut self, stuck: Vec<String>, beliefs: &[Belief], healed: u64) {
        self.stuck.extend(stuck);
        self.dead += u64::from(!beliefs.iter().any(|belief| belief.from > healed));
    }

    /// Adds what was asked and how it was answered.
    pub fn count(&mut self, history: &[Event]) {
        for event in history {
            match (event.act, event.phase) {
                (Act::Write { .. }, Phase::Done) => self.writes[0] += 1,
                (Act::Write { .. }, Phase::Failed) => self.writes[1] += 1,
                (Act::Granted { .. } | Act::Release, Phase::Done) => self.done += 1,
                (Act::Acquire { .. } | Act::Release, Phase::Failed) => self.failed += 1,
                (Act::Acquire { .. } | Act::Release, Phase::Unknown) => self.unknown += 1,
                _ => {}
            }
        }
    }

    /// Adds another round of the same store.
    pub fn add(&mut self, other: Self) {
        if !other.version.is_empty() {
            self.version = other.version;
        }
        self.claim = other.claim.or(self.claim);
        self.seeds.extend(other.seeds);
        self.given_up.extend(other.given_up);
        self.seconds += other.seconds;
        self.done += other.done;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.grants += other.grants;
        self.writes = [0, 1].map(|which| self.writes[which] + other.writes[which]);
        self.overlaps += other.overlaps;
        self.plain_lost += other.plain_lost;
        self.fenced_lost += other.fenced_lost;
        self.fence_faults += other.fence_faults;
        self.false_held += other.false_held;
        self.stillborn += other.stillborn;
        self.notices.extend(other.notices);
        self.leaks.extend(other.leaks);
        self.stuck.extend(other.stuck);
        self.orders = [0, 1, 2].map(|which| self.orders[which] + other.orders[which]);
        self.dead += other.dead;
        self.samples.extend(other.samples);
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (kind, other) in other.slowest {
            let slowest = self.slowest.entry(kind).or_default();
            *slowest = other.max(std::mem::take(slowest));
        }
        for (kind, times) in other.outages {
            self.outages.entry(kind).or_default().extend(times);
        }
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
    }

    /// All acquires and releases.
    pub fn operations(&self) -> u64 {
        self.done + self.failed + self.unknown
    }

    /// Acquires and releases whose outcome is known: what a run that counts operations counts.
    pub fn answered(&self) -> u64 {
        self.done + self.failed
    }

    /// What does not hold of the promise, in words; nothing if all holds.
    pub fn broken(&self, promise: Promise) -> Vec<String> {
        let mut broken = Vec::new();
        let mut must_be_none = |count: u64, what: &str| {
            if count > 0 {
                broken.push(format!("{count} {what}"));
            }
        };
        match promise {
            Promise::Broken if self.overlaps == 0 => {
                return vec!["the control was not found broken: the checkers do not bite".to_owned()];
            }
            Promise::Broken | Promise::Peer => return broken,
            Promise::Exclusive | Promise::Hint => {}
        }
        if promise == Promise::Exclusive {
            must_be_none(self.overlaps, "overlaps");
            must_be_none(self.orders[1], "stretches without an order");
            must_be_none(
                self.stuck.len() as u64,
                "names that nobody got any more after all faults were healed",
            );
        }
        must_be_none(self.fenced_lost, "updates lost under fences");
        must_be_none(self.fence_faults, "fences out of order");
        must_be_none(self.false_held, "answers \"held\" after the deadline");
        must_be_none(self.leaks.len() as u64, "leaks");
        must_be_none(self.dead, "rounds without any lock after all faults were healed");
        if self.grants == 0 {
            broken.push("no lock was granted, so nothing was shown".to_owned());
        }
        broken
    }
}

fn cell(update: &LostUpdate) -> &str {
    let (LostUpdate::Fork { name, .. }
    | LostUpdate::Unfounded { name, .. }
    | LostUpdate::Missing { name, .. }) = update;
    name
}

/// A fork and the missing end of one of its branches are one loss.
fn lost(updates: &[LostUpdate], cells: &str) -> u64 {
    let own = || updates.iter().filter(|update| cell(update).starts_with(cells));
    let missing = own().filter(|update| matches!(update, LostUpdate::Missing { .. })).count();
    let others = own().count() - missing;
    others.max(missing) as u64
}

/// The value below which this share of the sorted values lie; zero of none.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_that_holds_is_what_is_broken() {
        let fine = Report { grants: 9, ..Report::default() };
        assert_eq!(fine.broken(Promise::Exclusive), Vec::<String>::new());
        assert_eq!(fine.broken(Promise::Broken).len(), 1);
        let bad = Report { overlaps: 1, ..fine };
        assert_eq!(bad.broken(Promise::Exclusive), ["1 overlaps"]);
        assert_eq!(bad.broken(Promise::Hint), Vec::<String>::new());
        assert_eq!(bad.broken(Promise::Broken), Vec::<String>::new());
        let stuck = Report { grants: 9, stuck: vec!["lock-0".to_owned()], ..Report::default() };
        assert_eq!(stuck.broken(Promise::Exclusive).len(), 1);
    }

    #[test]
    fn a_run_without_grants_shows_nothing() {
        assert_eq!(Report::default().broken(Promise::Hint).len(), 1);
    }

    #[test]
    fn percentiles_are_values_that_were_there() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!([50, 99, 100].map(|percent| percentile(&values, percent)), [100, 198, 200]);
        assert_eq!(percentile(&[7], 50), 7);
        assert_eq!(percentile(&[], 99), 0);
    }
}
