//! Checker 5, a second opinion: is there one order of all grants and releases of a name that a single lock, kept by
//! hand, could have gone through?
//!
//! The search is Wing and Gong's, by the crate `porcupine-rs`. The model is a name with its holders: exclusive ones
//! alone, shared ones together, permits up to their number, and every grant with a greater fence than the one before.
//! A grant takes effect between its request and its answer; a release at some time after belief ended, never mind when.
//! An owner that enters again changes nothing. Long histories are cut into windows, because the search may be long, and
//! what it cannot decide in time is counted as unknown.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use porcupine_rs::{CheckResult, Model, Operation, check_operations_timeout};

use super::{Belief, Mode};

/// Operations in a window at most.
const WINDOW: usize = 5000;

/// How long to search in a window at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many windows could be put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Order {
    /// Windows with an order.
    pub found: usize,
    /// Windows for which there is none: a violation.
    pub impossible: usize,
    /// Windows for which the search took too long.
    pub unknown: usize,
}

/// Looks for an order, name by name, for at most so long in all: what is left then is unknown.
pub fn order(beliefs: &[Belief], budget: Duration) -> Order {
    let end = Instant::now() + budget;
    let mut names: BTreeMap<&str, Vec<&Belief>> = BTreeMap::new();
    for belief in beliefs {
        names.entry(&belief.name).or_default().push(belief);
    }
    let mut order = Order::default();
    for mut beliefs in names.into_values() {
        beliefs.sort_by_key(|belief| belief.from);
        for window in first_entries(&beliefs).chunks(WINDOW / 2) {
            let patience = PATIENCE.min(end.saturating_duration_since(Instant::now()));
            if patience.is_zero() {
                order.unknown += 1;
                continue;
            }
            let operations: Vec<_> = window.iter().flat_map(operations).collect();
            match check_operations_timeout::<Name>(&operations, patience) {
                CheckResult::Ok => order.found += 1,
                CheckResult::Illegal => order.impossible += 1,
                CheckResult::Unknown => order.unknown += 1,
            }
        }
    }
    order
}

/// Without those who entered again; the first entry lasts as long as any of them.
fn first_entries(beliefs: &[&Belief]) -> Vec<Belief> {
    let mut latest: BTreeMap<u64, usize> = BTreeMap::new();
    let mut entries: Vec<Belief> = Vec::new();
    for belief in beliefs {
        if let Some(outer) = latest.get(&belief.owner).map(|index| &mut entries[*index])
            && belief.from < outer.until
        {
            outer.until = outer.until.max(belief.until);
            continue;
        }
        latest.insert(belief.owner, entries.len());
        entries.push((*belief).clone());
    }
    entries
}

fn operations(belief: &Belief) -> [Operation<Name>; 2] {
    let (fence, mode) = (belief.fence, belief.mode);
    let operation = |from: u64, until: u64, op| Operation {
        client_id: None,
        call_time: i64::try_from(from).unwrap_or(i64::MAX - 1),
        return_time: i64::try_from(until).unwrap_or(i64::MAX),
        op,
        metadata: None,
    };
    [
        operation(belief.asked, belief.from, Step::Enter { fence, mode }),
        operation(belief.until, u64::MAX, Step::Leave { fence }),
    ]
}

/// What happens to a name. A grant is known by its fence.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter { fence: u64, mode: Mode },
    Leave { fence: u64 },
}

/// A name as the model keeps it.
#[derive(Clone, Debug)]
struct Name;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Held {
    last: u64,
    holders: Vec<(u64, Mode)>,
}

impl Model for Name {
    type State = Held;
    type Op = Step;
    type Metadata = ();

    fn init() -> Held {
        Held::default()
    }

    fn step(held: &Held, step: &Step) -> (bool, Held) {
        let mut next = held.clone();
        match *step {
            Step::Enter { fence, mode } => {
                let admitted = fence > held.last && held.admits(mode);
                next.last = fence;
                next.holders.push((fence, mode));
                (admitted, next)
            }
            Step::Leave { fence } => {
                next.holders.retain(|(holder, _)| *holder != fence);
                (next.holders.len() < held.holders.len(), next)
            }
        }
    }
}

impl Held {
    fn admits(&self, mode: Mode) -> bool {
        let taken: u32 = self.holders.iter().map(|(_, mode)| permits(*mode)).sum();
        match mode {
            Mode::Exclusive => self.holders.is_empty(),
            Mode::Shared => self.holders.iter().all(|(_, held)| *held == Mode::Shared),
            Mode::Permits { take, of } => {
                let alike = self.holders.iter().all(|(_, held)| matches!(held, Mode::Permits { .. }));
                alike && taken + take <= of
            }
        }
    }
}

fn permits(mode: Mode) -> u32 {
    if let Mode::Permits { take, .. } = mode { take } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(owner: u64, mode: Mode, fence: u64, [asked, from, until]: [u64; 3]) -> Belief {
        Belief { process: 1, name: "n".to_owned(), owner, mode, fence, asked, from, until }
    }

    fn permits(take: u32) -> Mode {
        Mode::Permits { take, of: 3 }
    }

    fn verdict(beliefs: &[Belief]) -> [usize; 3] {
        let Order { found, impossible, unknown } = order(beliefs, PATIENCE);
        [found, impossible, unknown]
    }

    #[test]
    fn holders_in_turn_readers_together_and_permits_have_an_order() {
        let (one, all) = (Mode::Exclusive, Mode::Shared);
        assert_eq!(verdict(&[belief(1, one, 1, [0, 1, 5]), belief(2, one, 2, [0, 6, 9])]), [1, 0, 0]);
        assert_eq!(verdict(&[belief(1, all, 1, [0, 1, 9]), belief(2, all, 2, [0, 6, 9])]), [1, 0, 0]);
        let some = [permits(1), permits(2)];
        assert_eq!(verdict(&[belief(1, some[0], 1, [0, 1, 9]), belief(2, some[1], 2, [0, 6, 9])]), [1, 0, 0]);
    }

    #[test]
    fn what_excludes_each_other_has_none() {
        for (older, younger) in [
            (Mode::Exclusive, Mode::Exclusive),
            (Mode::Shared, Mode::Exclusive),
            (Mode::Exclusive, Mode::Shared),
            (permits(2), permits(2)),
        ] {
            let both = [belief(1, older, 1, [0, 1, 9]), belief(2, younger, 2, [4, 6, 8])];
            assert_eq!(verdict(&both), [0, 1, 0], "{older:?} {younger:?}");
        }
    }

    #[test]
    fn a_fence_that_goes_back_has_none() {
        let (older, younger) = ([0, 1, 2], [3, 4, 5]);
        let both = [belief(1, Mode::Exclusive, 2, older), belief(2, Mode::Exclusive, 1, younger)];
        assert_eq!(verdict(&both), [0, 1, 0]);
    }

    #[test]
    fn entering_again_is_one_stay() {
        let (outer, inner) = ([0, 1, 5], [2, 3, 9]);
        let mut beliefs = vec![belief(1, Mode::Exclusive, 1, outer), belief(1, Mode::Exclusive, 1, inner)];
        assert_eq!(verdict(&beliefs), [1, 0, 0]);
        beliefs.push(belief(2, Mode::Exclusive, 2, [6, 7, 8]));
        assert_eq!(verdict(&beliefs), [0, 1, 0]);
    }

    #[test]
    fn without_time_nothing_is_known() {
        let Order { unknown, .. } = order(&[belief(1, Mode::Exclusive, 1, [0, 1, 5])], Duration::ZERO);
        assert_eq!(unknown, 1);
    }

    #[test]
    fn fifty_who_wait_at_once_are_put_in_order_in_no_time() {
        let waiting = |n: u64| belief(n, Mode::Exclusive, n, [0, n * 10, n * 10 + 5]);
        let beliefs: Vec<Belief> = (1..=50).map(waiting).collect();
        assert_eq!(verdict(&beliefs), [1, 0, 0]);
    }
}
