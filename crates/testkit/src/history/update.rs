//! Checker 3: no acknowledged update is lost.
//!
//! Under a lock each client reads a cell, computes, and writes a value nobody else ever writes, noting which value
//! it started from. The acknowledged writes then must form one chain: two that started from the same value mean that
//! one of them vanished, and whatever is read in the end must be the chain's last. Linear in the writes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use super::{Act, Event, Phase};

/// An acknowledged write that left no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostUpdate {
    /// Two acknowledged writes started from the same value: the second overwrote the first unseen.
    Fork {
        /// The cell.
        name: String,
        /// What both had read.
        read: u64,
        /// What they wrote.
        written: [u64; 2],
    },
    /// A write started from a value that nobody wrote.
    Unfounded {
        /// The cell.
        name: String,
        /// What it had read.
        read: u64,
        /// What it wrote.
        value: u64,
    },
    /// An acknowledged write that nobody built upon, and that is not what was read in the end.
    Missing {
        /// The cell.
        name: String,
        /// What it wrote.
        value: u64,
        /// What was read in the end.
        found: u64,
    },
}

/// Finds every update that was acknowledged and lost. Writes of unknown outcome may have happened or not: both are
/// fine.
pub fn lost_updates(history: &[Event]) -> Vec<LostUpdate> {
    let mut cells: BTreeMap<&str, Cell> = BTreeMap::new();
    for event in history {
        let cell = || event.name.as_str();
        match (event.phase, event.act) {
            (Phase::Done, Act::Write { read, value, .. }) => {
                cells.entry(cell()).or_default().write(read, value);
            }
            (Phase::Asked, Act::Write { value, .. }) => cells.entry(cell()).or_default().maybe(value),
            (Phase::Failed, Act::Write { value, .. }) => cells.entry(cell()).or_default().refuse(value),
            (Phase::Done, Act::Read { value }) => {
                cells.entry(cell()).or_default().found = Some((event.at, value));
            }
            _ => {}
        }
    }
    cells.into_iter().flat_map(|(name, cell)| cell.judge(name)).collect()
}

#[derive(Default)]
struct Cell {
    acknowledged: Vec<(u64, u64)>,
    /// Every value anybody ever asked to be written.
    asked: HashSet<u64>,
    found: Option<(u64, u64)>,
}

impl Cell {
    fn write(&mut self, read: u64, value: u64) {
        self.acknowledged.push((read, value));
        self.asked.insert(value);
    }

    fn maybe(&mut self, value: u64) {
        self.asked.insert(value);
    }

    fn refuse(&mut self, value: u64) {
        self.asked.remove(&value);
    }

    fn judge(self, name: &str) -> Vec<LostUpdate> {
        let mut found = Vec::new();
        let mut successors: HashMap<u64, u64> = HashMap::new();
        for &(read, value) in &self.acknowledged {
            if let Some(earlier) = successors.insert(read, value) {
                found.push(LostUpdate::Fork { name: name.to_owned(), read, written: [earlier, value] });
            }
            if read != 0 && !self.asked.contains(&read) {
                found.push(LostUpdate::Unfounded { name: name.to_owned(), read, value });
            }
        }
        found.extend(self.missing(name, &successors));
        found
    }

    /// Without a final read, or where an unknown write may have come last, nothing can be said.
    fn missing(&self, name: &str, successors: &HashMap<u64, u64>) -> Vec<LostUpdate> {
        let Some((_, last)) = self.found else { return Vec::new() };
        let known: HashSet<u64> = self.acknowledged.iter().map(|(_, value)| *value).collect();
        if self.asked.iter().any(|value| !known.contains(value)) {
            return Vec::new();
        }
        let tips =
            self.acknowledged.iter().filter(|(_, value)| *value != last && !successors.contains_key(value));
        tips.map(|&(_, value)| LostUpdate::Missing { name: name.to_owned(), value, found: last }).collect()
    }
}

impl fmt::Display for LostUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fork { name, read, written: [one, other] } => {
                write!(
                    f,
                    "cell {name:?}: {one} and {other} were both written over {read}; one of them is lost"
                )
            }
            Self::Unfounded { name, read, value } => {
                write!(f, "cell {name:?}: {value} was written over {read}, which nobody wrote")
            }
            Self::Missing { name, value, found } => {
                write!(f, "cell {name:?}: {value} was acknowledged, but {found} was found in the end")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, phase: Phase, act: Act) -> Event {
        Event { at, process: 1, operation: at, phase, name: "c".to_owned(), owner: 1, act }
    }

    fn wrote(at: u64, read: u64, value: u64) -> Event {
        event(at, Phase::Done, Act::Write { read, value, fence: 0 })
    }

    fn found(value: u64) -> Event {
        event(1000, Phase::Done, Act::Read { value })
    }

    #[test]
    fn a_chain_is_sound() {
        assert_eq!(lost_updates(&[wrote(1, 0, 1), wrote(2, 1, 2), wrote(3, 2, 3), found(3)]), []);
    }

    #[test]
    fn two_writes_over_one_value_are_caught() {
        let lost = lost_updates(&[wrote(1, 0, 1), wrote(2, 1, 2), wrote(3, 1, 3)]);
        assert_eq!(lost, [LostUpdate::Fork { name: "c".to_owned(), read: 1, written: [2, 3] }]);
    }

    #[test]
    fn an_acknowledged_write_missing_in_the_end_is_caught() {
        let lost = lost_updates(&[wrote(1, 0, 1), wrote(2, 1, 2), found(1)]);
        assert!(lost.contains(&LostUpdate::Missing { name: "c".to_owned(), value: 2, found: 1 }), "{lost:?}");
    }

    #[test]
    fn a_write_over_a_value_from_nowhere_is_caught() {
        let lost = lost_updates(&[wrote(1, 7, 1)]);
        assert_eq!(lost, [LostUpdate::Unfounded { name: "c".to_owned(), read: 7, value: 1 }]);
    }

    #[test]
    fn a_refused_write_excuses_nothing() {
        let write = Act::Write { read: 1, value: 9, fence: 0 };
        let refused = [event(2, Phase::Asked, write), event(3, Phase::Failed, write)];
        let history = [&refused[..], &[wrote(1, 0, 1), found(9)]].concat();
        assert!(matches!(lost_updates(&history)[..], [LostUpdate::Missing { value: 1, .. }]));
    }

    #[test]
    fn a_write_of_unknown_outcome_is_never_held_against_the_store() {
        let unknown = event(2, Phase::Asked, Act::Write { read: 1, value: 9, fence: 0 });
        assert_eq!(lost_updates(&[wrote(1, 0, 1), unknown.clone(), wrote(3, 9, 3), found(3)]), []);
        assert_eq!(lost_updates(&[wrote(1, 0, 1), unknown, wrote(3, 1, 3), found(9)]), []);
    }
}
