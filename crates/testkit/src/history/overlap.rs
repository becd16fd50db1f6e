//! Checker 1: nobody believes to hold a lock while somebody else does whom it excludes.
//!
//! One sweep over the beginnings and ends of all beliefs of a name. What is open is kept per owner, so the cost of a
//! step does not grow with the number of holders; the sort before makes it n log n.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use super::{Belief, Mode};

/// Two who believed at once what cannot be true at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// The younger began while the older, which excludes it, was held by another owner.
    Holders {
        /// Held first.
        older: Belief,
        /// Granted while it was.
        younger: Belief,
    },
    /// More permits were held than there are.
    Permits {
        /// The grant that was too much.
        younger: Belief,
        /// Permits held with it.
        held: u64,
    },
}

/// Finds every grant that came while it must not have. Beliefs may come in any order.
pub fn overlaps(beliefs: &[Belief]) -> Vec<Overlap> {
    let mut names: BTreeMap<&str, Vec<&Belief>> = BTreeMap::new();
    for belief in beliefs.iter().filter(|belief| belief.until > belief.from) {
        names.entry(&belief.name).or_default().push(belief);
    }
    names.into_values().flat_map(|beliefs| sweep(&beliefs)).collect()
}

fn sweep(beliefs: &[&Belief]) -> Vec<Overlap> {
    // An end sorts before a beginning of the same moment: touching is not overlapping.
    let mut edges: Vec<(u64, bool, usize)> = Vec::with_capacity(beliefs.len() * 2);
    for (index, belief) in beliefs.iter().enumerate() {
        edges.push((belief.from, true, index));
        edges.push((belief.until, false, index));
    }
    edges.sort_unstable();
    let mut open = Open::default();
    let mut found = Vec::new();
    for (_, begins, index) in edges {
        let belief = beliefs[index];
        if begins {
            found.extend(open.conflict(belief));
            open.add(belief);
        } else {
            open.remove(belief);
        }
    }
    found
}

/// What is held at one moment of the sweep.
#[derive(Default)]
struct Open<'a> {
    exclusive: HashMap<u64, Vec<&'a Belief>>,
    shared: HashMap<u64, Vec<&'a Belief>>,
    permits: HashMap<u64, Vec<&'a Belief>>,
    taken: u64,
}

impl<'a> Open<'a> {
    fn conflict(&self, younger: &Belief) -> Option<Overlap> {
        let other = |held: &HashMap<u64, Vec<&'a Belief>>| {
            // At most one entry is skipped: that of the same owner.
            let (_, beliefs) = held.iter().find(|(owner, _)| **owner != younger.owner)?;
            beliefs.first().map(|belief| (*belief).clone())
        };
        let older = match younger.mode {
            Mode::Exclusive => {
                other(&self.exclusive).or_else(|| other(&self.shared)).or_else(|| other(&self.permits))
            }
            Mode::Shared => other(&self.exclusive).or_else(|| other(&self.permits)),
            Mode::Permits { .. } => other(&self.exclusive).or_else(|| other(&self.shared)),
        };
        if let Some(older) = older {
            return Some(Overlap::Holders { older, younger: younger.clone() });
        }
        let Mode::Permits { take, of } = younger.mode else { return None };
        let held = self.taken + u64::from(take);
        (held > u64::from(of)).then(|| Overlap::Permits { younger: younger.clone(), held })
    }

    fn add(&mut self, belief: &'a Belief) {
        self.held(belief.mode).entry(belief.owner).or_default().push(belief);
        self.taken += taken(belief.mode);
    }

    fn remove(&mut self, belief: &'a Belief) {
        let held = self.held(belief.mode);
        if let Some(own) = held.get_mut(&belief.owner) {
            own.retain(|open| !std::ptr::eq(*open, belief));
            if own.is_empty() {
                held.remove(&belief.owner);
            }
        }
        self.taken -= taken(belief.mode);
    }

    fn held(&mut self, mode: Mode) -> &mut HashMap<u64, Vec<&'a Belief>> {
        match mode {
            Mode::Exclusive => &mut self.exclusive,
            Mode::Shared => &mut self.shared,
            Mode::Permits { .. } => &mut self.permits,
        }
    }
}

fn taken(mode: Mode) -> u64 {
    match mode {
        Mode::Permits { take, .. } => take.into(),
        _ => 0,
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holders { older, younger } => write!(
                f,
                "{:?}: owner {} (fence {}) held from {} to {}, and owner {} (fence {}) was granted at {}",
                older.name,
                older.owner,
                older.fence,
                older.from,
                older.until,
                younger.owner,
                younger.fence,
                younger.from
            ),
            Self::Permits { younger, held } => {
                write!(
                    f,
                    "{:?}: {held} permits held at {}, by {:?}",
                    younger.name, younger.from, younger.mode
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(owner: u64, mode: Mode, from: u64, until: u64) -> Belief {
        Belief { process: 1, name: "n".to_owned(), owner, mode, fence: from, asked: from, from, until }
    }

    fn permits(take: u32) -> Mode {
        Mode::Permits { take, of: 3 }
    }

    #[test]
    fn holders_one_after_the_other_are_sound() {
        let history = [belief(1, Mode::Exclusive, 0, 10), belief(2, Mode::Exclusive, 10, 20)];
        assert_eq!(overlaps(&history), []);
    }

    #[test]
    fn two_exclusive_holders_are_caught() {
        let history = [belief(1, Mode::Exclusive, 0, 10), belief(2, Mode::Exclusive, 9, 20)];
        let found = overlaps(&history);
        let [Overlap::Holders { older, younger }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((older.owner, younger.owner), (1, 2));
        assert!(found[0].to_string().contains("owner 1"), "{}", found[0]);
    }

    #[test]
    fn a_reader_beside_a_writer_is_caught_either_way_round() {
        for (first, second) in [(Mode::Exclusive, Mode::Shared), (Mode::Shared, Mode::Exclusive)] {
            assert_eq!(overlaps(&[belief(1, first, 0, 10), belief(2, second, 5, 6)]).len(), 1);
        }
        assert_eq!(overlaps(&[belief(1, Mode::Shared, 0, 10), belief(2, Mode::Shared, 5, 6)]), []);
    }

    #[test]
    fn too_many_permits_are_caught() {
        let sound =
            [belief(1, permits(2), 0, 10), belief(2, permits(1), 5, 15), belief(3, permits(2), 10, 20)];
        assert_eq!(overlaps(&sound), []);
        let greedy = [belief(1, permits(2), 0, 10), belief(2, permits(2), 9, 15)];
        assert!(matches!(overlaps(&greedy)[..], [Overlap::Permits { held: 4, .. }]));
    }

    #[test]
    fn an_owner_does_not_exclude_itself() {
        let history = [
            belief(1, Mode::Exclusive, 0, 10),
            belief(1, Mode::Exclusive, 2, 8),
            belief(1, Mode::Shared, 3, 12),
            belief(2, Mode::Shared, 11, 13),
        ];
        assert_eq!(overlaps(&history), []);
    }

    #[test]
    fn other_names_do_not_matter() {
        let mut elsewhere = belief(2, Mode::Exclusive, 0, 10);
        elsewhere.name = "m".to_owned();
        assert_eq!(overlaps(&[belief(1, Mode::Exclusive, 0, 10), elsewhere]), []);
    }

    #[test]
    fn a_hundred_thousand_readers_at_once_are_swept_in_no_time() {
        let mut history: Vec<Belief> =
            (0..100_000).map(|owner| belief(owner, Mode::Shared, owner, 1_000_000 + owner)).collect();
        assert_eq!(overlaps(&history), []);
        history.push(belief(u64::MAX, Mode::Exclusive, 1_000_000, 1_000_001));
        assert_eq!(overlaps(&history).len(), 1);
    }
}
