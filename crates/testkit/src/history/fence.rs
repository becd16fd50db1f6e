//! Checker 2: fences grow.
//!
//! If one grant was returned before another was asked for, its fence is the smaller; no two grants have the same
//! fence, unless one owner entered again what it held; and where a cell takes writes by fence, the fences it took
//! never go down. One sweep per name, in the order of time.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use super::{Act, Belief, Event, Phase};

/// A fence that did not do what fences are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceFault {
    /// A grant asked for after another was returned did not get a greater fence.
    NotGreater {
        /// Returned first.
        earlier: Belief,
        /// Asked for afterwards, with a fence that is no greater.
        later: Belief,
    },
    /// Two grants have the same fence.
    Twice {
        /// One.
        one: Belief,
        /// The other.
        other: Belief,
    },
    /// An owner entered again what it held and got another fence.
    Reentry {
        /// What it held.
        outer: Belief,
        /// The entry with another fence.
        inner: Belief,
    },
    /// A cell took a write with a smaller fence than one it had taken before.
    StaleWrite {
        /// The cell.
        name: String,
        /// The fence it had seen.
        seen: u64,
        /// The smaller fence it took.
        taken: u64,
    },
}

/// Finds every fence out of order among these beliefs, and every stale write in the history.
pub fn fence_faults(beliefs: &[Belief], history: &[Event]) -> Vec<FenceFault> {
    let mut names: BTreeMap<&str, Vec<&Belief>> = BTreeMap::new();
    for belief in beliefs {
        names.entry(&belief.name).or_default().push(belief);
    }
    let mut found = Vec::new();
    for mut beliefs in names.into_values() {
        beliefs.sort_by_key(|belief| belief.from);
        found.extend(repeated(&beliefs));
        found.extend(not_greater(&beliefs));
    }
    found.extend(stale_writes(history));
    found
}

/// An entry into what its owner holds already: it began while an earlier belief of that owner lasted.
fn is_reentry(outer: &Belief, inner: &Belief) -> bool {
    outer.owner == inner.owner && outer.from <= inner.from && inner.from < outer.until
}

fn repeated(beliefs: &[&Belief]) -> Vec<FenceFault> {
    let mut fences: HashMap<u64, &Belief> = HashMap::new();
    let mut newest: HashMap<u64, &Belief> = HashMap::new();
    let mut found = Vec::new();
    for belief in beliefs {
        let outer = newest.get(&belief.owner).copied().filter(|outer| is_reentry(outer, belief));
        match (fences.insert(belief.fence, belief), outer) {
            (_, Some(outer)) if outer.fence != belief.fence => {
                found.push(FenceFault::Reentry { outer: outer.clone(), inner: (*belief).clone() });
            }
            (Some(one), None) => found.push(FenceFault::Twice { one: one.clone(), other: (*belief).clone() }),
            _ => {}
        }
        // The outer belief lasts longest; later entries are compared with it.
        if outer.is_none_or(|outer| outer.until < belief.until) {
            newest.insert(belief.owner, belief);
        }
    }
    found
}

fn not_greater(beliefs: &[&Belief]) -> Vec<FenceFault> {
    let reentries = reentries(beliefs);
    // Who enters again has the fence of its first entry, whatever was granted to others meanwhile.
    let mut asked: Vec<usize> = (0..beliefs.len()).filter(|index| !reentries[*index]).collect();
    asked.sort_by_key(|&index| beliefs[index].asked);
    let mut returned = beliefs.iter().peekable();
    let mut highest: Option<&Belief> = None;
    let mut found = Vec::new();
    for index in asked {
        let later = beliefs[index];
        while let Some(earlier) = returned.next_if(|earlier| earlier.from < later.asked) {
            if highest.is_none_or(|highest| earlier.fence > highest.fence) {
                highest = Some(earlier);
            }
        }
        let beaten = highest.filter(|earlier| earlier.fence >= later.fence);
        if let Some(earlier) = beaten {
            found.push(FenceFault::NotGreater { earlier: earlier.clone(), later: later.clone() });
        }
    }
    found
}

/// Which of these, in the order they began, are entries into what their owners held already.
fn reentries(beliefs: &[&Belief]) -> Vec<bool> {
    let mut held: HashMap<u64, u64> = HashMap::new();
    let is_reentry = |belief: &&Belief| {
        let until = held.entry(belief.owner).or_default();
        let is_reentry = belief.from < *until;
        *until = belief.until.max(*until);
        is_reentry
    };
    beliefs.iter().map(is_reentry).collect()
}

fn stale_writes(history: &[Event]) -> Vec<FenceFault> {
    let mut writes: Vec<(&Event, u64)> = history
        .iter()
        .filter(|event| event.phase == Phase::Done)
        .filter_map(
            |event| if let Act::Write { fence, .. } = event.act { Some((event, fence)) } else { None },
        )
        .collect();
    writes.sort_by_key(|(event, _)| event.at);
    let mut seen: HashMap<&str, u64> = HashMap::new();
    let mut found = Vec::new();
    for (event, taken) in writes {
        let highest = seen.entry(&event.name).or_default();
        if taken < *highest {
            found.push(FenceFault::StaleWrite { name: event.name.clone(), seen: *highest, taken });
        }
        *highest = taken.max(*highest);
    }
    found
}

impl fmt::Display for FenceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGreater { earlier, later } => write!(
                f,
                "{:?}: fence {} was returned at {}, yet a grant asked for at {} got {}",
                later.name, earlier.fence, earlier.from, later.asked, later.fence
            ),
            Self::Twice { one, other } => {
                write!(
                    f,
                    "{:?}: owners {} and {} both got fence {}",
                    one.name, one.owner, other.owner, one.fence
                )
            }
            Self::Reentry { outer, inner } => write!(
                f,
                "{:?}: owner {} held fence {} and entered again with {}",
                outer.name, outer.owner, outer.fence, inner.fence
            ),
            Self::StaleWrite { name, seen, taken } => {
                write!(f, "cell {name:?} had seen fence {seen} and took a write with {taken}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Mode;

    fn belief(owner: u64, fence: u64, [asked, from, until]: [u64; 3]) -> Belief {
        Belief { process: 1, name: "n".to_owned(), owner, mode: Mode::Exclusive, fence, asked, from, until }
    }

    fn write(at: u64, fence: u64) -> Event {
        let act = Act::Write { read: 0, value: at, fence };
        Event { at, process: 1, operation: at, phase: Phase::Done, name: "c".to_owned(), owner: 1, act }
    }

    #[test]
    fn growing_fences_are_sound_and_so_are_those_of_grants_that_raced() {
        assert_eq!(fence_faults(&[belief(1, 1, [0, 1, 2]), belief(2, 2, [3, 4, 5])], &[]), []);
        // Both were asked for before either was returned: either order is right.
        assert_eq!(fence_faults(&[belief(1, 2, [0, 5, 6]), belief(2, 1, [1, 7, 8])], &[]), []);
    }

    #[test]
    fn a_fence_that_goes_back_is_caught() {
        let found = fence_faults(&[belief(1, 2, [0, 1, 2]), belief(2, 1, [3, 4, 5])], &[]);
        assert!(matches!(found[..], [FenceFault::NotGreater { .. }]), "{found:?}");
    }

    #[test]
    fn a_fence_that_goes_back_far_behind_the_newest_is_caught() {
        let history = [belief(1, 9, [0, 1, 2]), belief(2, 10, [3, 4, 5]), belief(3, 8, [6, 7, 8])];
        let found = fence_faults(&history, &[]);
        assert!(
            matches!(&found[..], [FenceFault::NotGreater { earlier, .. }] if earlier.fence == 10),
            "{found:?}"
        );
    }

    #[test]
    fn one_fence_given_twice_is_caught() {
        let found = fence_faults(&[belief(1, 1, [0, 5, 6]), belief(2, 1, [1, 7, 8])], &[]);
        assert!(matches!(found[..], [FenceFault::Twice { .. }]), "{found:?}");
    }

    #[test]
    fn entering_again_keeps_the_fence() {
        assert_eq!(fence_faults(&[belief(1, 1, [0, 1, 9]), belief(1, 1, [2, 3, 4])], &[]), []);
        let found = fence_faults(&[belief(1, 1, [0, 1, 9]), belief(1, 2, [2, 3, 4])], &[]);
        assert!(matches!(found[..], [FenceFault::Reentry { .. }]), "{found:?}");
    }

    #[test]
    fn entering_again_is_no_new_grant_whatever_others_were_granted_meanwhile() {
        let (outer, inner) = (belief(1, 1, [0, 1, 9]), belief(1, 1, [6, 7, 8]));
        assert_eq!(fence_faults(&[outer, belief(2, 2, [2, 3, 4]), inner], &[]), []);
    }

    #[test]
    fn an_owner_that_comes_back_needs_a_new_fence() {
        let found = fence_faults(&[belief(1, 1, [0, 1, 2]), belief(1, 1, [3, 4, 5])], &[]);
        assert!(found.iter().any(|fault| matches!(fault, FenceFault::Twice { .. })), "{found:?}");
    }

    #[test]
    fn a_stale_write_that_was_taken_is_caught() {
        assert_eq!(fence_faults(&[], &[write(1, 1), write(2, 1), write(3, 2)]), []);
        let found = fence_faults(&[], &[write(1, 2), write(2, 1)]);
        assert_eq!(found, [FenceFault::StaleWrite { name: "c".to_owned(), seen: 2, taken: 1 }]);
    }
}
