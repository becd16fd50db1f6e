//! All checkers at once, and what they say.

use std::fmt;

use super::{Event, FenceFault, LostUpdate, Overlap, beliefs, fence_faults, lost_updates, overlaps};

/// What the checkers found in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    /// Acquisitions looked at: a verdict on none is worth nothing.
    pub grants: usize,
    /// Those who believed at once what excludes each other.
    pub overlaps: Vec<Overlap>,
    /// Fences that did not grow.
    pub fences: Vec<FenceFault>,
    /// Acknowledged updates that vanished.
    pub updates: Vec<LostUpdate>,
}

/// Runs every checker over a history.
pub fn check(history: &[Event]) -> Verdict {
    let beliefs = beliefs(history);
    Verdict {
        grants: beliefs.len(),
        overlaps: overlaps(&beliefs),
        fences: fence_faults(&beliefs, history),
        updates: lost_updates(history),
    }
}

impl Verdict {
    /// Nothing was found that must not be.
    pub fn is_sound(&self) -> bool {
        self.overlaps.is_empty() && self.fences.is_empty() && self.updates.is_empty()
    }
}

/// One line per violation, at most ten of each sort.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grants, overlaps, fences, updates } = self;
        let (o, n, u) = (overlaps.len(), fences.len(), updates.len());
        write!(f, "{grants} grants, {o} overlaps, {n} fence faults, {u} lost updates")?;
        overlaps.iter().take(10).try_for_each(|overlap| write!(f, "\noverlap: {overlap}"))?;
        fences.iter().take(10).try_for_each(|fault| write!(f, "\nfence: {fault}"))?;
        updates.iter().take(10).try_for_each(|update| write!(f, "\nlost update: {update}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Act, Mode, Phase, belief::planted::held};

    /// A history of `grants` holders one after the other, each with the next fence and the next value.
    fn sound(grants: u64) -> Vec<Event> {
        (1..=grants)
            .flat_map(|n| {
                let mut events = held(n, Mode::Exclusive, n, [n * 10, n * 10 + 1, n * 10 + 9]);
                let act = Act::Write { read: n - 1, value: n, fence: n };
                let (at, name) = (n * 10 + 5, "c".to_owned());
                events.push(Event { at, process: 1, operation: n, phase: Phase::Done, name, owner: n, act });
                events
            })
            .collect()
    }

    #[test]
    fn a_long_sound_history_is_sound() {
        let verdict = check(&sound(20_000));
        assert!(verdict.is_sound(), "{verdict}");
        assert_eq!(verdict.grants, 20_000);
    }

    #[test]
    fn one_planted_double_grant_among_thousands_is_caught_by_every_checker_it_concerns() {
        let mut history = sound(5_000);
        // A lock whose release ignores who asks: 2500's grant falls into 2499's time, with its fence and its value.
        for event in &mut history {
            if event.owner == 2500 {
                event.at -= 8;
                match &mut event.act {
                    Act::Granted { fence, .. } => *fence -= 1,
                    Act::Write { read, .. } => *read -= 1,
                    _ => {}
                }
            }
        }
        let verdict = check(&history);
        assert_eq!(verdict.overlaps.len(), 1, "{verdict}");
        assert!(!verdict.fences.is_empty() && !verdict.updates.is_empty(), "{verdict}");
        assert!(verdict.to_string().contains("1 overlaps"), "{verdict}");
    }
}
