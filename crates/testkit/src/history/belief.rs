//! Who believed to hold what, from when to when: the intervals the checkers look at.

use std::collections::HashMap;

use super::{Act, Event, Mode, Phase};

/// One acquisition as its client saw it, shrunk to what nobody can doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// The process of its holder.
    pub process: u32,
    /// The lock.
    pub name: String,
    /// Whose acquisition it is.
    pub owner: u64,
    /// How it was held.
    pub mode: Mode,
    /// Its fence.
    pub fence: u64,
    /// When it was asked for.
    pub asked: u64,
    /// When the grant was returned: belief begins.
    pub from: u64,
    /// The earliest of: release asked for, loss told, own deadline. Belief ends, this moment not included.
    pub until: u64,
}

/// Reads the beliefs out of a history, in the order they began. Events may come in any order.
///
/// An acquisition is found by its process, owner and name; an owner that enters one lock twice has two beliefs, and
/// its releases end the younger first.
pub fn beliefs(history: &[Event]) -> Vec<Belief> {
    let mut events: Vec<&Event> = history.iter().collect();
    events.sort_by_key(|event| event.at);
    let mut reader = Reader::default();
    for event in events {
        reader.read(event);
    }
    let mut beliefs: Vec<Belief> = reader.done;
    beliefs.extend(reader.open.into_values().flatten());
    beliefs.sort_by_key(|belief| (belief.from, belief.fence));
    beliefs
}

/// Who an event is about.
type Claimant<'a> = (u32, u64, &'a str);

#[derive(Default)]
struct Reader<'a> {
    /// What was asked for and when, by process and operation.
    asked: HashMap<(u32, u64), (Mode, u64)>,
    open: HashMap<Claimant<'a>, Vec<Belief>>,
    done: Vec<Belief>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, event: &'a Event) {
        let claimant = (event.process, event.owner, event.name.as_str());
        match (event.phase, event.act) {
            (Phase::Asked, Act::Acquire { mode }) => {
                self.asked.insert((event.process, event.operation), (mode, event.at));
            }
            (Phase::Done, Act::Granted { fence, deadline }) => self.begin(event, claimant, fence, deadline),
            (Phase::Done | Phase::Noticed, Act::Renewed { deadline }) => {
                self.renew(claimant, event.at, deadline);
            }
            (Phase::Asked, Act::Release) => self.end_youngest(claimant, event.at),
            (Phase::Noticed, Act::Lost) => self.end_all(claimant, event.at),
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, claimant: Claimant<'a>, fence: u64, deadline: u64) {
        let Some((mode, asked)) = self.asked.remove(&(event.process, event.operation)) else { return };
        let (process, name, owner) = (event.process, event.name.clone(), event.owner);
        let open = self.open.entry(claimant).or_default();
        // Who enters again has it since it asked, or since the first entry; it may be told so late that the deadline has
        // passed.
        let outer = open.iter().find(|outer| outer.fence == fence && asked < outer.until);
        let (from, until) = (outer.map_or(event.at, |outer| asked.max(outer.from)), deadline);
        let belief = Belief { process, name, owner, mode, fence, asked, from, until };
        // Who enters again what it neither released nor lost has it until the same deadline, also if nobody noted the
        // renewals that came while it asked.
        for outer in open.iter_mut().filter(|outer| outer.fence == fence) {
            outer.until = outer.until.max(until);
        }
        open.push(belief);
    }

    /// A renewal that is told after the deadline comes too late: that belief had ended.
    fn renew(&mut self, claimant: Claimant<'a>, at: u64, deadline: u64) {
        let open = self.open.get_mut(&claimant).into_iter().flatten();
        for belief in open.filter(|belief| at <= belief.until) {
            belief.until = belief.until.max(deadline);
        }
    }

    fn end_youngest(&mut self, claimant: Claimant<'a>, at: u64) {
        if let Some(belief) = self.open.get_mut(&claimant).and_then(Vec::pop) {
            self.done.push(ended(belief, at));
        }
    }

    fn end_all(&mut self, claimant: Claimant<'a>, at: u64) {
        let open = self.open.remove(&claimant).into_iter().flatten();
        self.done.extend(open.map(|belief| ended(belief, at)));
    }
}

fn ended(belief: Belief, at: u64) -> Belief {
    Belief { until: belief.until.min(at), ..belief }
}

#[cfg(test)]
pub(super) mod planted {
    //! Short histories to plant violations in.

    use super::{Act, Event, Mode, Phase};

    /// An acquisition asked for at `asked`, granted at `from` with this fence, released at `until`.
    pub(crate) fn held(owner: u64, mode: Mode, fence: u64, [asked, from, until]: [u64; 3]) -> Vec<Event> {
        let operation = owner * 1000 + fence * 2;
        let event = |at, phase, operation, act| Event {
            at,
            process: 1,
            operation,
            phase,
            name: "n".to_owned(),
            owner,
            act,
        };
        vec![
            event(asked, Phase::Asked, operation, Act::Acquire { mode }),
            event(from, Phase::Done, operation, Act::Granted { fence, deadline: u64::MAX }),
            event(until, Phase::Asked, operation + 1, Act::Release),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{planted::held, *};

    fn with_deadline(mut events: Vec<Event>, deadline: u64) -> Vec<Event> {
        for event in &mut events {
            if let Act::Granted { deadline: old, .. } = &mut event.act {
                *old = deadline;
            }
        }
        events
    }

    fn noticed(at: u64, owner: u64, act: Act) -> Event {
        Event { at, process: 1, operation: 99_999, phase: Phase::Noticed, name: "n".to_owned(), owner, act }
    }

    #[test]
    fn belief_runs_from_the_answer_to_the_release() {
        let found = beliefs(&held(1, Mode::Exclusive, 5, [10, 20, 30]));
        assert_eq!((found[0].asked, found[0].from, found[0].until, found[0].fence), (10, 20, 30, 5));
    }

    #[test]
    fn belief_ends_at_the_deadline_or_at_the_loss_if_they_come_first() {
        let history = with_deadline(held(1, Mode::Exclusive, 5, [10, 20, 30]), 25);
        assert_eq!(beliefs(&history)[0].until, 25);
        let mut history = held(1, Mode::Exclusive, 5, [10, 20, 30]);
        history.push(noticed(22, 1, Act::Lost));
        assert_eq!(beliefs(&history)[0].until, 22);
    }

    #[test]
    fn a_renewal_in_time_prolongs_belief_and_a_late_one_does_not() {
        let mut history = with_deadline(held(1, Mode::Exclusive, 5, [10, 20, 90]), 40);
        history.push(noticed(39, 1, Act::Renewed { deadline: 60 }));
        assert_eq!(beliefs(&history)[0].until, 60);
        history.push(noticed(61, 1, Act::Renewed { deadline: 80 }));
        assert_eq!(beliefs(&history)[0].until, 60);
    }

    #[test]
    fn who_enters_again_has_believed_all_the_while_unless_it_lost_the_lock_between() {
        let mut history = with_deadline(held(1, Mode::Exclusive, 5, [10, 20, 90])[..2].to_vec(), 40);
        let mut again = with_deadline(held(1, Mode::Exclusive, 5, [30, 60, 70])[..2].to_vec(), 80);
        for event in &mut again {
            event.operation += 100;
        }
        history.extend(again);
        assert_eq!(beliefs(&history)[0].until, 80);
        history.push(noticed(50, 1, Act::Lost));
        assert_eq!(beliefs(&history)[0].until, 40);
    }

    #[test]
    fn who_is_told_of_an_entry_after_its_deadline_has_entered_all_the_same() {
        let mut history = with_deadline(held(1, Mode::Exclusive, 5, [10, 20, 90])[..2].to_vec(), 40);
        let mut again = with_deadline(held(1, Mode::Exclusive, 5, [30, 60, 70])[..2].to_vec(), 50);
        for event in &mut again {
            event.operation += 100;
        }
        history.extend(again);
        let believed = beliefs(&history);
        assert_eq!([believed[1].from, believed[1].until], [30, 50]);
        assert!(crate::history::fence_faults(&believed, &history).is_empty());
    }

    #[test]
    fn an_unanswered_acquire_is_no_belief() {
        let mut history = held(1, Mode::Exclusive, 5, [10, 20, 30]);
        history[1].phase = Phase::Unknown;
        assert_eq!(beliefs(&history), []);
    }

    #[test]
    fn an_unreleased_lock_is_believed_until_its_deadline() {
        let mut history = with_deadline(held(1, Mode::Exclusive, 5, [10, 20, 30]), 70);
        history.pop();
        assert_eq!(beliefs(&history)[0].until, 70);
    }
}
