//! Checker 6: how long nobody could get a lock, and how soon it could be had again.
//!
//! It is for workloads where somebody always asks for every name: then each moment at which nobody holds a name is
//! time in which it could not be had. A holder that was killed holds nothing any more, whatever it believed: the time
//! until its lease ends counts. Faults may overlap, and an outage is counted for each fault that it touches.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Act, Belief, Event, Hit, Phase, Window};

/// What one fault did to those who wanted locks. Nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The fault's kind.
    pub kind: String,
    /// The name that nobody could have for longest.
    pub name: String,
    /// The longest time without a holder that touches the fault, over all names.
    pub unavailable: u64,
    /// From the end of the fault until every name had been held again.
    pub recovery: u64,
}

/// Measures what each fault did. `end` is when the workload stopped asking.
pub fn outages(beliefs: &[Belief], windows: &[Window], end: u64) -> Vec<Outage> {
    let gaps = gaps(beliefs, &deaths(windows), end);
    windows.iter().map(|window| outage(window, &gaps)).collect()
}

/// Names that nobody got between two moments although somebody that lives asked for them then, and waited for at least
/// so long. A name that nobody asked for is not stuck.
pub fn stuck(history: &[Event], windows: &[Window], [from, until]: [u64; 2], least: u64) -> Vec<String> {
    let deaths = deaths(windows);
    let mut asked: HashMap<(u32, u64), (&str, u64)> = HashMap::new();
    let mut answered: HashMap<(u32, u64), u64> = HashMap::new();
    let mut granted: HashSet<&str> = HashSet::new();
    for event in history.iter().filter(|event| !deaths.contains_key(&event.process)) {
        let operation = (event.process, event.operation);
        match (event.phase, event.act) {
            (Phase::Asked, Act::Acquire { .. }) => drop(asked.insert(operation, (&event.name, event.at))),
            (_, Act::Granted { .. }) if event.at > from => drop(granted.insert(&event.name)),
            (_, Act::Acquire { .. } | Act::Granted { .. }) => drop(answered.insert(operation, event.at)),
            _ => {}
        }
    }
    let waited = asked.iter().filter_map(|(operation, (name, at))| {
        let end = answered.get(operation).copied().unwrap_or(until).min(until);
        (end.saturating_sub((*at).max(from)) >= least).then_some(*name)
    });
    let stuck: BTreeSet<&str> = waited.filter(|name| !granted.contains(name)).collect();
    stuck.into_iter().map(str::to_owned).collect()
}

/// Times at which nobody held a name.
type Gaps<'a> = BTreeMap<&'a str, Vec<(u64, u64)>>;

fn deaths(windows: &[Window]) -> HashMap<u32, u64> {
    let killed = |window: &Window| match window.hit {
        Hit::Killed(process) => Some((process, window.from)),
        _ => None,
    };
    windows.iter().filter_map(killed).collect()
}

fn gaps<'a>(beliefs: &'a [Belief], deaths: &HashMap<u32, u64>, end: u64) -> Gaps<'a> {
    let mut names: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for belief in beliefs {
        let death = deaths.get(&belief.process).copied().unwrap_or(u64::MAX);
        names.entry(&belief.name).or_default().push((belief.from, belief.until.min(death)));
    }
    for held in names.values_mut() {
        held.sort_unstable();
        let mut free = Vec::new();
        let mut last = held.first().map_or(0, |(from, _)| *from);
        for (from, until) in held.iter().copied().chain([(end, end)]) {
            if from > last {
                free.push((last, from));
            }
            last = last.max(until);
        }
        *held = free;
    }
    names
}

fn outage(window: &Window, gaps: &Gaps<'_>) -> Outage {
    let mut outage = Outage { kind: window.kind.clone(), name: String::new(), unavailable: 0, recovery: 0 };
    for (name, gaps) in gaps {
        // Gaps are in order and do not overlap: those that touch the window stand together.
        let first = gaps.partition_point(|(_, until)| *until < window.from);
        let past = gaps.partition_point(|(from, _)| *from <= window.until);
        for (from, until) in &gaps[first.min(past)..past] {
            if until - from > outage.unavailable {
                outage.unavailable = until - from;
                (*name).clone_into(&mut outage.name);
            }
            outage.recovery = outage.recovery.max(until.saturating_sub(window.until));
        }
    }
    outage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Mode;

    fn belief(process: u32, name: &str, from: u64, until: u64) -> Belief {
        let (name, mode) = (name.to_owned(), Mode::Exclusive);
        Belief { process, name, owner: from, mode, fence: from, asked: from, from, until }
    }

    fn window(hit: Hit, from: u64, until: u64) -> Window {
        Window { kind: "k".to_owned(), hit, from, until }
    }

    fn measured(beliefs: &[Belief], window: &Window) -> (u64, u64) {
        let found = outages(beliefs, std::slice::from_ref(window), 1000);
        (found[0].unavailable, found[0].recovery)
    }

    #[test]
    fn time_without_a_holder_around_a_fault_is_measured_from_the_last_to_the_next() {
        let beliefs = [belief(1, "n", 0, 100), belief(2, "n", 250, 1000)];
        assert_eq!(measured(&beliefs, &window(Hit::Store, 120, 200)), (150, 50));
        assert_eq!(measured(&beliefs, &window(Hit::Store, 300, 400)), (0, 0));
    }

    #[test]
    fn the_slowest_name_counts() {
        let beliefs = [belief(1, "n", 0, 1000), belief(2, "m", 0, 100), belief(2, "m", 400, 1000)];
        assert_eq!(measured(&beliefs, &window(Hit::Store, 50, 150)), (300, 250));
        assert_eq!(outages(&beliefs, &[window(Hit::Store, 50, 150)], 1000)[0].name, "m");
    }

    #[test]
    fn the_killed_hold_nothing_any_more() {
        let beliefs = [belief(1, "n", 0, 500), belief(2, "n", 510, 1000)];
        assert_eq!(measured(&beliefs, &window(Hit::Stopped(1), 100, 100)), (0, 0));
        assert_eq!(measured(&beliefs, &window(Hit::Killed(1), 100, 100)), (410, 410));
    }

    #[test]
    fn a_name_that_never_comes_back_is_unavailable_to_the_end() {
        let beliefs = [belief(1, "n", 0, 100)];
        assert_eq!(measured(&beliefs, &window(Hit::Store, 50, 200)), (900, 800));
    }

    /// Somebody of this process asks at 10, and hears `answer` at `at`.
    fn waited(process: u32, at: u64, answer: Act) -> [Event; 2] {
        let event = |at, phase, act| {
            let name = "n".to_owned();
            Event { at, process, operation: 1, phase, name, owner: 1, act }
        };
        let phase = if matches!(answer, Act::Granted { .. }) { Phase::Done } else { Phase::Failed };
        [event(10, Phase::Asked, Act::Acquire { mode: Mode::Exclusive }), event(at, phase, answer)]
    }

    #[test]
    fn a_name_is_stuck_if_somebody_that_lives_waited_for_it_in_vain() {
        let refused = Act::Acquire { mode: Mode::Exclusive };
        let granted = Act::Granted { fence: 1, deadline: 1000 };
        assert_eq!(stuck(&waited(1, 200, refused), &[], [50, 300], 100), ["n"]);
        assert_eq!(stuck(&waited(1, 200, refused)[..1], &[], [50, 300], 100), ["n"]);
        assert!(stuck(&waited(1, 200, granted), &[], [50, 300], 100).is_empty());
        assert!(stuck(&waited(1, 60, refused), &[], [50, 300], 100).is_empty());
        let killed = window(Hit::Killed(1), 20, 20);
        assert!(stuck(&waited(1, 200, refused)[..1], &[killed], [50, 300], 100).is_empty());
    }
}
