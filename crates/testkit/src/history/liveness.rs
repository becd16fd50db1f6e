//! Checker 6: how long nobody could get a lock, and how soon it could be had again.
//!
//! A name could not be had while somebody asked for it and nobody held it. A holder that was killed holds nothing any
//! more, whatever it believed: the time until its lease ends counts. Who was killed or stopped asks for nothing. Faults
//! may overlap, and an outage is counted for each fault that it touches.

use std::collections::{BTreeMap, HashMap};

use super::{Act, Belief, Event, Hit, Phase, Window, beliefs, notice::pauses};

/// Between two who ask for a name and do not get it, it may be left alone for so long, and was wanted all the time: who
/// is refused at once comes back a little later. Nanoseconds.
const BRIDGE: u64 = 1_000_000_000;

/// A name that so many asked for in vain, one after the other, is stuck, though each was refused at once.
const MANY: usize = 5;

/// What one fault did to those who wanted locks. Nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The fault's kind.
    pub kind: String,
    /// The name that nobody could have for longest.
    pub name: String,
    /// The longest time that touches the fault in which a name was asked for and had no holder, over all names.
    pub unavailable: u64,
    /// From the end of the fault until every name that was asked for had been held again.
    pub recovery: u64,
}

/// Measures what each fault did. `end` is when the workload stopped asking.
pub fn outages(history: &[Event], windows: &[Window], end: u64) -> Vec<Outage> {
    let beliefs = beliefs(history);
    let asks = asks(history, windows, end);
    let mut gaps = gaps(&beliefs, &deaths(windows), end);
    for (name, free) in &mut gaps {
        let asked = merged(asks.get(name).map_or(&[], Vec::as_slice), BRIDGE);
        *free = both(free, &asked);
    }
    windows.iter().map(|window| outage(window, &gaps)).collect()
}

/// Names that were not had any more at the end of a time, though somebody that lives wanted them: since the last that
/// held one let go, others have asked for it for at least so long, or many were refused over so long. A name that
/// nobody asked for is not stuck; nor is one that somebody got later, while those who still waited then came to an end: it
/// was only slow, as everything is on a busy machine.
pub fn stuck(history: &[Event], windows: &[Window], [from, until]: [u64; 2], least: u64) -> Vec<String> {
    let (deaths, asks) = (deaths(windows), asks(history, windows, until));
    let mut last_held: HashMap<String, u64> = HashMap::new();
    for belief in beliefs(history) {
        let end = belief.until.min(deaths.get(&belief.process).copied().unwrap_or(u64::MAX));
        let known = last_held.entry(belief.name).or_default();
        *known = end.max(*known);
    }
    let is_stuck = |name: &str, asks: &[(u64, u64)]| {
        let since = from.max(last_held.get(name).copied().unwrap_or(0));
        let later = asks.iter().filter(|(_, end)| *end > since);
        let later: Vec<_> = later.map(|(begin, end)| (since.max(*begin), *end)).collect();
        // Of many who wait at once the time counts once.
        let waited: u64 = merged(&later, 0).iter().map(|(begin, end)| end - begin).sum();
        let first = later.first().map_or(until, |(begin, _)| *begin);
        waited >= least || (later.len() >= MANY && until - first >= least)
    };
    let stuck = asks.iter().filter(|(name, asks)| is_stuck(name, asks));
    stuck.map(|(name, _)| (*name).to_owned()).collect()
}

/// Spans of time by name.
type Spans<'a> = BTreeMap<&'a str, Vec<(u64, u64)>>;

/// When each name was asked for, until it was answered, or until `end`: only for as long as the one who asked ran.
fn asks<'a>(history: &'a [Event], windows: &[Window], end: u64) -> Spans<'a> {
    let (deaths, pauses) = (deaths(windows), pauses(windows));
    let mut answered: HashMap<(u32, u64), u64> = HashMap::new();
    for event in history {
        if event.phase != Phase::Asked && matches!(event.act, Act::Acquire { .. } | Act::Granted { .. }) {
            answered.insert((event.process, event.operation), event.at);
        }
    }
    let mut spans = Spans::new();
    for event in history {
        if !matches!((event.phase, event.act), (Phase::Asked, Act::Acquire { .. })) {
            continue;
        }
        let answer = answered.get(&(event.process, event.operation)).copied().unwrap_or(end);
        let death = deaths.get(&event.process).copied().unwrap_or(u64::MAX);
        let last = answer.min(death).min(end);
        let spans = spans.entry(event.name.as_str()).or_default();
        spans.extend(running(pauses.get(&event.process), (event.at, last)));
    }
    for spans in spans.values_mut() {
        spans.sort_unstable();
    }
    spans
}

/// What is left of a span without the times at which the process stood still, which are in order.
fn running(pauses: Option<&Vec<(u64, u64)>>, (mut from, until): (u64, u64)) -> Vec<(u64, u64)> {
    let mut ran = Vec::new();
    for &(stopped, resumed) in pauses.into_iter().flatten().filter(|pause| pause.0 < until) {
        if stopped > from {
            ran.push((from, stopped));
        }
        from = from.max(resumed);
    }
    ran.push((from, until));
    ran.retain(|(from, until)| from < until);
    ran
}

/// Spans that are in order and apart, from those that are only in order; those that are closer than `bridge` are one.
fn merged(spans: &[(u64, u64)], bridge: u64) -> Vec<(u64, u64)> {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for &(from, until) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1.saturating_add(bridge) => last.1 = last.1.max(until),
            _ => merged.push((from, until)),
        }
    }
    merged
}

/// What is in both of two lists of spans that are in order and apart.
fn both(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut shared = Vec::new();
    for &(from, until) in one {
        let first = other.partition_point(|span| span.1 <= from);
        let touching = other[first..].iter().take_while(|span| span.0 < until);
        shared.extend(touching.map(|span| (from.max(span.0), until.min(span.1))));
    }
    shared
}

fn deaths(windows: &[Window]) -> HashMap<u32, u64> {
    let killed = |window: &Window| match window.hit {
        Hit::Killed(process) => Some((process, window.from)),
        _ => None,
    };
    windows.iter().filter_map(killed).collect()
}

/// Times at which nobody held a name.
fn gaps<'a>(beliefs: &'a [Belief], deaths: &HashMap<u32, u64>, end: u64) -> Spans<'a> {
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

fn outage(window: &Window, gaps: &Spans<'_>) -> Outage {
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

    const ASK: Act = Act::Acquire { mode: Mode::Exclusive };

    fn event(at: u64, process: u32, operation: u64, phase: Phase, name: &str, act: Act) -> Event {
        Event { at, process, operation, phase, name: name.to_owned(), owner: operation, act }
    }

    /// One process asks at the first moment, has it from the second, and releases it at the third.
    fn held(process: u32, name: &str, [asked, from, until]: [u64; 3]) -> Vec<Event> {
        let granted = Act::Granted { fence: from, deadline: 10_000 };
        vec![
            event(asked, process, asked, Phase::Asked, name, ASK),
            event(from, process, asked, Phase::Done, name, granted),
            event(until, process, asked, Phase::Asked, name, Act::Release),
        ]
    }

    /// One process asks at the first moment, and is refused at the second.
    fn refused(process: u32, name: &str, [asked, at]: [u64; 2]) -> Vec<Event> {
        vec![
            event(asked, process, asked, Phase::Asked, name, ASK),
            event(at, process, asked, Phase::Failed, name, ASK),
        ]
    }

    fn window(hit: Hit, from: u64, until: u64) -> Window {
        Window { kind: "k".to_owned(), hit, from, until }
    }

    fn measured(history: &[Event], window: &Window) -> (u64, u64) {
        let found = outages(history, std::slice::from_ref(window), 1000);
        (found[0].unavailable, found[0].recovery)
    }

    #[test]
    fn time_without_a_holder_is_measured_from_the_last_to_the_next_while_somebody_asked() {
        let history = [held(1, "n", [0, 0, 100]), held(2, "n", [50, 250, 1000])].concat();
        assert_eq!(measured(&history, &window(Hit::Store, 120, 200)), (150, 50));
        assert_eq!(measured(&history, &window(Hit::Store, 300, 400)), (0, 0));
    }

    #[test]
    fn a_name_that_nobody_asked_for_was_not_missed() {
        let history = [held(1, "n", [0, 0, 100]), held(2, "n", [240, 250, 1000])].concat();
        assert_eq!(measured(&history, &window(Hit::Store, 90, 200)), (0, 0));
        assert_eq!(measured(&history, &window(Hit::Store, 90, 245)), (10, 5));
    }

    #[test]
    fn who_was_refused_and_comes_back_wanted_it_all_the_time() {
        let asked = [refused(2, "n", [110, 112]), refused(2, "n", [150, 151])].concat();
        let history = [held(1, "n", [0, 0, 100]), asked, held(2, "n", [240, 250, 1000])].concat();
        assert_eq!(measured(&history, &window(Hit::Store, 120, 200)), (140, 50));
    }

    #[test]
    fn who_stands_still_asks_for_nothing() {
        let pauses = vec![(60, 240), (400, 500)];
        assert_eq!(running(Some(&pauses), (50, 250)), [(50, 60), (240, 250)]);
        assert_eq!(running(Some(&pauses), (240, 600)), [(240, 400), (500, 600)]);
        assert_eq!(running(Some(&pauses), (70, 200)), []);
        assert_eq!(running(None, (50, 250)), [(50, 250)]);
        let history = refused(1, "n", [10, 200]);
        assert!(!is_stuck(&history, &[window(Hit::Stopped(1), 50, 200)]));
    }

    #[test]
    fn the_slowest_name_counts() {
        let one = held(1, "n", [0, 0, 1000]);
        let other = [held(2, "m", [0, 0, 100]), held(3, "m", [20, 400, 1000])].concat();
        let history = [one, other].concat();
        assert_eq!(measured(&history, &window(Hit::Store, 50, 150)), (300, 250));
        assert_eq!(outages(&history, &[window(Hit::Store, 50, 150)], 1000)[0].name, "m");
    }

    #[test]
    fn the_killed_hold_nothing_any_more() {
        let history = [held(1, "n", [0, 0, 500]), held(2, "n", [20, 510, 1000])].concat();
        assert_eq!(measured(&history, &window(Hit::Stopped(1), 100, 100)), (0, 0));
        assert_eq!(measured(&history, &window(Hit::Killed(1), 100, 100)), (410, 410));
    }

    #[test]
    fn a_name_that_never_comes_back_is_unavailable_to_the_end() {
        let history = [held(1, "n", [0, 0, 100]), refused(2, "n", [90, 5000])].concat();
        assert_eq!(measured(&history, &window(Hit::Store, 50, 200)), (900, 800));
    }

    fn is_stuck(history: &[Event], windows: &[Window]) -> bool {
        !stuck(history, windows, [50, 300], 100).is_empty()
    }

    #[test]
    fn a_name_is_stuck_if_somebody_that_lives_waited_for_it_in_vain() {
        assert!(is_stuck(&refused(1, "n", [10, 200]), &[]));
        assert!(is_stuck(&refused(1, "n", [10, 200])[..1], &[]), "it waits still");
        assert!(!is_stuck(&held(1, "n", [10, 200, 250]), &[]));
        assert!(!is_stuck(&refused(1, "n", [10, 60]), &[]));
        assert!(!is_stuck(&refused(1, "n", [10, 200])[..1], &[window(Hit::Killed(1), 20, 20)]));
    }

    #[test]
    fn a_name_that_somebody_got_in_the_end_was_only_slow() {
        assert!(is_stuck(&held(1, "n", [10, 400, 500])[..1], &[]), "nobody has got it yet");
        assert!(!is_stuck(&held(1, "n", [10, 400, 500]), &[]));
        let other = [refused(1, "n", [10, 200]), held(2, "m", [10, 400, 500])].concat();
        assert!(is_stuck(&other, &[]), "another name is no help");
    }

    #[test]
    fn the_time_of_a_crowd_counts_once() {
        let crowd: Vec<Event> = (1..=4).flat_map(|process| refused(process, "n", [200, 260])).collect();
        assert!(!is_stuck(&crowd, &[]));
    }

    #[test]
    fn a_name_that_was_had_once_more_and_never_again_is_stuck() {
        let again = [held(1, "n", [10, 60, 80]), refused(2, "n", [70, 290])].concat();
        assert!(is_stuck(&again, &[]));
        let at_last = [again, held(3, "n", [200, 280, 400])].concat();
        assert!(!is_stuck(&at_last, &[]), "it is held");
    }

    #[test]
    fn a_name_that_refuses_everybody_at_once_is_stuck() {
        let refusals = |count: usize| -> Vec<Event> {
            (0..count as u64)
                .flat_map(|index| refused(1, "n", [100 + 20 * index, 101 + 20 * index]))
                .collect()
        };
        assert!(is_stuck(&refusals(MANY), &[]));
        assert!(!is_stuck(&refusals(MANY - 1), &[]));
    }
}
