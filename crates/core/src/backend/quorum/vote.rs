//! What a majority of answers says: pure decisions, no requests.

use std::time::Duration;

use super::{Shared, refusals::too_few, view};
use crate::{
    backend::{Attempt, Broken, Busy, Grant, Holder, Release, Renewal},
    error::{Error, Operation, Result, Retry},
};

/// The answers to one try.
#[derive(Debug)]
pub(super) struct Votes {
    members: usize,
    quorum: usize,
    pub(super) granted: Vec<(usize, Grant)>,
    /// Where an answer is missing that may have been a grant.
    pub(super) unsure: Vec<usize>,
    busy: Vec<Busy>,
    errors: Vec<Error>,
}

impl Votes {
    pub(super) fn new(shared: &Shared) -> Self {
        let (members, quorum) = (shared.len(), shared.quorum);
        let (granted, unsure, busy, errors) = Default::default();
        Self { members, quorum, granted, unsure, busy, errors }
    }

    pub(super) fn add(&mut self, at: usize, answer: Result<Attempt>) {
        match answer {
            Ok(Attempt::Granted(grant)) => self.granted.push((at, grant)),
            Ok(Attempt::Busy(busy)) => self.busy.push(busy),
            Err(error) => {
                // What cannot have arrived left nothing; giving back what is not there does no harm.
                self.unsure.push(at);
                self.errors.push(error);
            }
        }
    }

    pub(super) fn is_won(&self) -> bool {
        self.granted.len() >= self.quorum
    }

    /// Whether no answer to come can change the outcome: not whether it is won, and not whether enough are of use to
    /// say why it is lost.
    pub(super) fn is_certain(&self, pending: usize) -> bool {
        let heard = self.granted.len() + self.busy.len();
        let is_told = heard >= self.quorum || heard + pending < self.quorum;
        self.is_won() || self.granted.len() + pending < self.quorum && is_told
    }

    /// The greatest fence given.
    pub(super) fn fence(&self) -> u64 {
        self.granted.iter().map(|(_, grant)| grant.fence).max().unwrap_or(0)
    }

    /// For how long a majority granted it: the shortest of the longest.
    pub(super) fn lease(&self) -> Duration {
        common_lease(self.granted.iter().map(|(_, grant)| grant.granted).collect(), self.quorum)
    }

    /// What a vote that was not won says to whoever asked.
    pub(super) fn lost(mut self) -> Result<Defeat> {
        let spare = self.members - self.quorum;
        let heard = self.granted.len() + self.busy.len();
        if heard >= self.quorum {
            return Ok(self.defeat(heard));
        }
        let is_final = |error: &Error| error.retry() == Retry::No;
        if self.errors.iter().filter(|error| is_final(error)).count() > spare
            && let Some(at) = self.errors.iter().position(is_final)
        {
            return Err(self.errors.swap_remove(at));
        }
        Err(too_few(Operation::Acquire, (heard, self.quorum, self.members), self.errors))
    }

    fn defeat(&self, heard: usize) -> Defeat {
        let told: Vec<&[Holder]> = self.busy.iter().map(|busy| busy.holders.as_slice()).collect();
        let holders = view::holders(&told, heard, self.quorum);
        let mut hints: Vec<Duration> = self.busy.iter().filter_map(|busy| busy.retry_after).collect();
        hints.sort_unstable();
        // It is to be had when as many are free as are missing.
        let missing = self.quorum.saturating_sub(self.granted.len()).max(1);
        let retry_after = hints.get(missing - 1).or(hints.last()).copied();
        let named = told.iter().any(|holders| !holders.is_empty());
        let split = holders.is_empty() && (named || !self.granted.is_empty());
        let waiters = self.busy.iter().map(|busy| busy.waiters).max().unwrap_or(0);
        let ahead = self.busy.iter().map(|busy| busy.ahead).max().unwrap_or(0);
        Defeat { busy: Busy { holders, place: None, waiters, ahead, retry_after }, split }
    }
}

/// Not won, and why.
#[derive(Debug)]
pub(super) struct Defeat {
    pub(super) busy: Busy,
    /// Nobody has a majority: several contend at once.
    pub(super) split: bool,
}

/// The lease that a majority gave: so many gave at least this. Zero if they are too few.
fn common_lease(mut leases: Vec<Duration>, quorum: usize) -> Duration {
    leases.sort_unstable_by(|one, other| other.cmp(one));
    leases.get(quorum - 1).copied().unwrap_or_default()
}

/// What members said of one lease.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    leases: Vec<Duration>,
    /// Who does not have it.
    pub(super) lost: Vec<usize>,
    pub(super) broken: Option<Broken>,
    errors: Vec<Error>,
}

impl Renewals {
    pub(super) fn add(&mut self, at: usize, answer: Result<Renewal>) {
        match answer {
            Ok(Renewal::Renewed { granted }) => self.leases.push(granted),
            Ok(Renewal::Lost(broken)) => {
                self.lost.push(at);
                self.broken = self.broken.take().or(broken);
            }
            Err(error) => self.errors.push(error),
        }
    }

    pub(super) fn is_renewed(&self, shared: &Shared) -> bool {
        self.leases.len() >= shared.quorum
    }

    /// Whether no answer to come can change the outcome.
    pub(super) fn is_certain(&self, shared: &Shared) -> bool {
        self.is_renewed(shared) || self.lost.len() > shared.spare()
    }

    /// What it comes to. One member's trouble ends no lease.
    pub(super) fn decide(self, shared: &Shared, operation: Operation) -> Result<Renewal> {
        if self.is_renewed(shared) {
            return Ok(Renewal::Renewed { granted: common_lease(self.leases, shared.quorum) });
        }
        if self.lost.len() > shared.spare() {
            return Ok(Renewal::Lost(self.broken));
        }
        Err(too_few(operation, (self.leases.len(), shared.quorum, shared.len()), self.errors))
    }
}

/// The answers of a majority at least.
pub(super) fn majority<T>(
    shared: &Shared,
    operation: Operation,
    answers: Vec<(usize, Result<T>)>,
) -> Result<Vec<T>> {
    let (mut fine, mut errors) = (Vec::new(), Vec::new());
    for (_, answer) in answers {
        match answer {
            Ok(answer) => fine.push(answer),
            Err(error) => errors.push(error),
        }
    }
    if fine.len() >= shared.quorum {
        return Ok(fine);
    }
    Err(too_few(operation, (fine.len(), shared.quorum, shared.len()), errors))
}

/// What a release by an id alone comes to: it was held if a majority may have had it.
pub(super) fn released(shared: &Shared, answers: Vec<(usize, Result<Release>)>) -> Result<Release> {
    let answers = majority(shared, Operation::Release, answers)?;
    let gone = answers.iter().filter(|answer| matches!(answer, Release::Gone(_))).count();
    if gone <= shared.spare() {
        return Ok(Release::Released);
    }
    let broken = answers.into_iter().find_map(|answer| match answer {
        Release::Gone(broken) => broken,
        Release::Released => None,
    });
    Ok(Release::Gone(broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_as_long_as_a_majority_gave_it() {
        let seconds = |leases: &[u64]| leases.iter().map(|lease| Duration::from_secs(*lease)).collect();
        assert_eq!(common_lease(seconds(&[1, 9, 5, 7, 3]), 3), Duration::from_secs(5));
        assert_eq!(common_lease(seconds(&[9, 5, 7]), 3), Duration::from_secs(5));
        assert_eq!(common_lease(seconds(&[9, 5]), 3), Duration::ZERO);
    }
}
