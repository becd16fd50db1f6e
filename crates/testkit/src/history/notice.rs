//! Checker 8: whoever loses a lock is told in time, and nobody is told "held" after the deadline.
//!
//! A holder's own deadline is the last moment at which it may believe. A process that stands still can be told nothing, so
//! lateness is the time for which it ran; and whoever is busy with a request of its own does not listen, so lateness counts
//! from the holder's last word. A loss that a holder found by asking was not told. A lock that was lost before it was
//! returned is counted by itself.

use std::collections::HashMap;

use super::{Act, Event, Hit, Phase, Window};

/// What holders were told about losing their locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Notices {
    /// For each loss that was told: for how long the process ran after the deadline, in nanoseconds; zero if told before.
    pub late: Vec<u64>,
    /// Grants that were returned after their own deadline, although the process ran at the deadline: such a lock is
    /// worth nothing, and its acquisition had better failed.
    pub stillborn: usize,
    /// Every time a holder asked itself after its deadline and was told that it holds. Must never be.
    pub false_held: Vec<FalseHeld>,
}

/// A holder that was told it holds when it could not know that any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FalseHeld {
    /// The lock.
    pub name: String,
    /// Who asked.
    pub owner: u64,
    /// When it asked.
    pub asked: u64,
    /// The deadline it had then or got later: before `asked` all the same.
    pub deadline: u64,
}

/// Looks at every loss and every check of a history, which may be in any order.
pub fn notices(history: &[Event], windows: &[Window]) -> Notices {
    let mut events: Vec<&Event> = history.iter().collect();
    events.sort_by_key(|event| event.at);
    let pauses = pauses(windows);
    let (mut deadlines, mut spoke) = (Deadlines::new(), Deadlines::new());
    let mut checks: HashMap<(u32, u64), u64> = HashMap::new();
    let mut found = Notices::default();
    for event in events {
        let claimant = (event.process, event.owner, event.name.as_str());
        let operation = (event.process, event.operation);
        match (event.phase, event.act) {
            (_, Act::Granted { deadline, .. }) => {
                later(&mut deadlines, claimant, deadline);
                let stood = stands(pauses.get(&event.process), deadline);
                found.stillborn += usize::from(!stood && event.at > deadline);
            }
            (_, Act::Renewed { deadline }) => later(&mut deadlines, claimant, deadline),
            (Phase::Noticed, Act::Lost) => {
                if let Some(deadline) = deadlines.remove(&claimant) {
                    let due = deadline.max(spoke.get(&claimant).copied().unwrap_or(0));
                    found.late.push(ran(pauses.get(&event.process), [due, event.at]));
                }
            }
            (Phase::Failed, Act::Check) => drop(deadlines.remove(&claimant)),
            (Phase::Asked, Act::Check) => drop(checks.insert(operation, event.at)),
            (Phase::Done, Act::Held { deadline }) => {
                let asked = checks.remove(&operation).filter(|asked| *asked > deadline);
                let (name, owner) = (event.name.clone(), event.owner);
                found.false_held.extend(asked.map(|asked| FalseHeld { name, owner, asked, deadline }));
            }
            _ => {}
        }
        match (event.phase, event.act) {
            (Phase::Noticed, Act::Lost) => drop(spoke.remove(&claimant)),
            // A renewal is not the holder's word: it hears it while it listens.
            (Phase::Noticed, _) => {}
            _ => drop(spoke.insert(claimant, event.at)),
        }
    }
    found
}

type Deadlines<'a> = HashMap<(u32, u64, &'a str), u64>;

fn later<'a>(deadlines: &mut Deadlines<'a>, claimant: (u32, u64, &'a str), deadline: u64) {
    let known = deadlines.entry(claimant).or_default();
    *known = deadline.max(*known);
}

/// When each process stood still, in order.
pub(super) fn pauses(windows: &[Window]) -> HashMap<u32, Vec<(u64, u64)>> {
    let mut pauses: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    for window in windows {
        if let Hit::Stopped(process) = window.hit {
            pauses.entry(process).or_default().push((window.from, window.until));
        }
    }
    pauses
}

/// Whether the process stood still at that moment.
fn stands(pauses: Option<&Vec<(u64, u64)>>, at: u64) -> bool {
    pauses.into_iter().flatten().any(|(from, until)| *from <= at && at < *until)
}

/// For how long the process ran between two moments. Its pauses do not overlap: each ends before the next begins.
fn ran(pauses: Option<&Vec<(u64, u64)>>, [since, told]: [u64; 2]) -> u64 {
    let stood = |(from, until): &(u64, u64)| told.min(*until).saturating_sub(since.max(*from));
    let stood: u64 = pauses.into_iter().flatten().map(stood).sum();
    told.saturating_sub(since).saturating_sub(stood)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, operation: u64, phase: Phase, act: Act) -> Event {
        Event { at, process: 1, operation, phase, name: "n".to_owned(), owner: 5, act }
    }

    fn lost_at(at: u64) -> [Event; 2] {
        let granted = Act::Granted { fence: 1, deadline: 100 };
        [event(10, 1, Phase::Done, granted), event(at, 2, Phase::Noticed, Act::Lost)]
    }

    #[test]
    fn a_loss_told_after_the_deadline_is_late_by_that_much() {
        assert_eq!(notices(&lost_at(130), &[]).late, [30]);
        assert_eq!(notices(&lost_at(90), &[]).late, [0]);
    }

    #[test]
    fn a_lock_that_was_lost_before_it_was_returned_is_counted_by_itself() {
        let mut history = lost_at(130);
        history[0].at = 120;
        let found = notices(&history, &[]);
        assert_eq!((found.stillborn, found.late), (1, vec![10]));
        let pause = Window { kind: "pause".to_owned(), hit: Hit::Stopped(1), from: 50, until: 115 };
        assert_eq!(notices(&history, &[pause]).stillborn, 0);
    }

    #[test]
    fn who_is_busy_or_asks_is_not_told() {
        let [granted, lost] = lost_at(530);
        let release = |at| event(at, 3, Phase::Failed, Act::Release);
        assert_eq!(notices(&[granted.clone(), release(520), lost.clone()], &[]).late, [10]);
        assert_eq!(notices(&[granted.clone(), release(80), lost.clone()], &[]).late, [430]);
        let asked = event(529, 3, Phase::Failed, Act::Check);
        assert!(notices(&[granted, asked, lost], &[]).late.is_empty());
    }

    #[test]
    fn who_stands_still_is_told_when_it_goes_on() {
        let pause = |from, until| [Window { kind: "pause".to_owned(), hit: Hit::Stopped(1), from, until }];
        assert_eq!(notices(&lost_at(530), &pause(50, 500)).late, [30]);
        assert_eq!(notices(&lost_at(530), &pause(150, 500)).late, [80]);
        assert_eq!(notices(&lost_at(530), &pause(540, 600)).late, [430]);
    }

    #[test]
    fn held_after_the_deadline_is_caught() {
        let check = |at, deadline| {
            [event(at, 3, Phase::Asked, Act::Check), event(at + 1, 3, Phase::Done, Act::Held { deadline })]
        };
        assert_eq!(notices(&check(100, 100), &[]).false_held, []);
        assert_eq!(notices(&check(101, 100), &[]).false_held.len(), 1);
    }
}
