//! The line of a name, and whose turn it is in it: pure functions of what the server listed.
//!
//! The order of the nodes is the only truth. Exclusive contenders hold when nobody is before them, readers when no writer
//! is, permits when all before them and their own do not exceed what there is. Whoever holds goes on holding
//! whatever comes after, so nothing has to be written when a turn comes.

use std::collections::HashSet;

use leasehold_core::backend::{Kind, Mode};

use crate::names::{Contender, LATCH, Stand, is_mark};

/// Who is at a name, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) contenders: Vec<Contender>,
    /// The name is a latch that has not opened.
    pub(crate) latch: bool,
    /// Marks of forced releases.
    pub(crate) marks: Vec<String>,
    /// A node that no program we know would make.
    pub(crate) foreign: Option<String>,
}

/// What a contender must wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocker {
    /// This node's end.
    Gone(String),
    /// This node's end, or news of it: a writer may become a reader, a waiter a holder.
    Changed(String),
    /// Anything that happens in the line.
    Line,
}

/// Where a contender stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It holds.
    Holds,
    /// It waits.
    Waits(Blocker),
    /// It is not in the line.
    Absent,
}

/// Writers that have become readers, by their nodes: their names cannot tell.
pub(crate) type Downgraded = HashSet<String>;

impl Line {
    /// Sorts what the server listed.
    pub(crate) fn of(children: Vec<String>) -> Self {
        let mut line = Self::default();
        for child in children {
            if let Some(contender) = Contender::parse(&child) {
                line.contenders.push(contender);
            } else if child == LATCH {
                line.latch = true;
            } else if is_mark(&child) {
                line.marks.push(child);
            } else {
                line.foreign = Some(child);
            }
        }
        line.contenders.sort_by_key(|contender| contender.order);
        line
    }

    /// Where the contender of this node stands.
    pub(crate) fn turn(&self, node: &str, downgraded: &Downgraded) -> Turn {
        let Some(at) = self.position(node) else { return Turn::Absent };
        let (me, before) = (&self.contenders[at], &self.contenders[..at]);
        let blocker = match me.mode {
            Mode::Shared => before.iter().rev().find(|other| excludes(other, downgraded)).map(changed),
            Mode::Permits { take, of } => permits_blocker(before, take.get(), of.get()),
            Mode::Open => None,
            _ => before
                .iter()
                .rev()
                .find(|other| other.mode != Mode::Open)
                .map(|other| Blocker::Gone(other.node.clone())),
        };
        blocker.map_or(Turn::Holds, Turn::Waits)
    }

    /// What the name is in use as by those before this node, or by anybody if there is no such node, if that is
    /// something else than what is wanted.
    pub(crate) fn conflict(&self, node: Option<&str>, wanted: Mode) -> Option<Kind> {
        if self.latch && wanted != Mode::Open {
            // How far it is, only the latch itself says.
            return Some(Kind::Latch { count: 0 });
        }
        let at = node.and_then(|node| self.position(node)).unwrap_or(self.contenders.len());
        let kinds = self.contenders[..at].iter().filter_map(|other| kind(other.mode));
        kinds.into_iter().find(|found| Some(*found) != kind(wanted))
    }

    /// Whether somebody who asked for the fair line stands behind this node.
    pub(crate) fn fair_behind(&self, node: &str) -> bool {
        let at = self.position(node).unwrap_or(self.contenders.len());
        self.contenders.iter().skip(at + 1).any(|other| other.stand == Stand::Fair)
    }

    /// What the name is in use as; `None` if by nobody. A latch's count is not known here.
    pub(crate) fn kind(&self) -> Option<Kind> {
        if self.latch {
            return Some(Kind::Latch { count: 0 });
        }
        self.contenders.iter().find_map(|other| kind(other.mode))
    }

    /// Those who hold, and those who wait, each in order.
    pub(crate) fn parted(&self, downgraded: &Downgraded) -> (Vec<&Contender>, Vec<&Contender>) {
        let (mut somebody, mut writer, mut taken) = (false, false, 0);
        self.contenders.iter().partition(|contender| match contender.mode {
            Mode::Open => false,
            Mode::Permits { take, of } => {
                taken += u64::from(take.get());
                taken <= u64::from(of.get())
            }
            Mode::Exclusive if !downgraded.contains(&contender.node) => {
                let is_first = !somebody;
                (somebody, writer) = (true, true);
                is_first
            }
            _ => {
                somebody = true;
                !writer
            }
        })
    }

    /// The place of this node, counted from zero.
    pub(crate) fn position(&self, node: &str) -> Option<usize> {
        self.contenders.iter().position(|contender| contender.node == node)
    }
}

fn changed(other: &Contender) -> Blocker {
    Blocker::Changed(other.node.clone())
}

/// Whether a reader must wait for it.
fn excludes(other: &Contender, downgraded: &Downgraded) -> bool {
    other.mode == Mode::Exclusive && !downgraded.contains(&other.node)
}

/// The first who waits for permits must see every release; those behind it only whether it got them, or left.
fn permits_blocker(before: &[Contender], take: u32, of: u32) -> Option<Blocker> {
    let (take, of) = (u64::from(take), u64::from(of));
    let mut taken = 0;
    let mut last_waiting = None;
    for other in before {
        taken += permits(other.mode);
        if taken > of {
            last_waiting = Some(other);
        }
    }
    match last_waiting {
        Some(other) => Some(changed(other)),
        None if taken + take > of => Some(Blocker::Line),
        None => None,
    }
}

fn permits(mode: Mode) -> u64 {
    match mode {
        Mode::Permits { take, .. } => u64::from(take.get()),
        _ => 0,
    }
}

/// Open latches are nobody's.
fn kind(mode: Mode) -> Option<Kind> {
    match mode {
        Mode::Exclusive | Mode::Shared => Some(Kind::Lock),
        Mode::Permits { of, .. } => Some(Kind::Semaphore { of: of.get() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::ClaimId;

    use super::*;
    use crate::names::prefix;

    fn node(serial: u64, mode: Mode, order: u32) -> String {
        let id: ClaimId = format!("00000000-0000-0000-0000-000000000001:{serial}").parse().unwrap();
        format!("{}{order:010}", prefix(id, mode, Stand::Plain))
    }

    fn permits_of(take: u32, of: u32) -> Mode {
        Mode::Permits { take: take.try_into().unwrap(), of: of.try_into().unwrap() }
    }

    #[test]
    fn each_waits_for_the_one_before_it() {
        let nodes: Vec<_> = (0..3).map(|n| node(n, Mode::Exclusive, n as u32)).collect();
        let line = Line::of(vec![nodes[2].clone(), nodes[0].clone(), nodes[1].clone()]);
        let none = Downgraded::new();
        assert_eq!(line.turn(&nodes[0], &none), Turn::Holds);
        assert_eq!(line.turn(&nodes[2], &none), Turn::Waits(Blocker::Gone(nodes[1].clone())));
        assert_eq!(line.turn("nobody", &none), Turn::Absent);
    }

    #[test]
    fn readers_pass_readers_and_writers_that_became_readers() {
        let (writer, first, second) =
            (node(0, Mode::Exclusive, 0), node(1, Mode::Shared, 1), node(2, Mode::Shared, 2));
        let line = Line::of(vec![writer.clone(), first.clone(), second.clone()]);
        assert_eq!(line.turn(&second, &Downgraded::new()), Turn::Waits(Blocker::Changed(writer.clone())));
        let downgraded = Downgraded::from([writer]);
        assert_eq!(line.turn(&second, &downgraded), Turn::Holds);
        assert_eq!(line.parted(&downgraded).0.len(), 3);
    }

    #[test]
    fn permits_are_given_in_order_and_never_too_many() {
        let nodes: Vec<_> = [2, 2, 1]
            .iter()
            .enumerate()
            .map(|(at, take)| node(at as u64, permits_of(*take, 3), at as u32))
            .collect();
        let line = Line::of(nodes.clone());
        let none = Downgraded::new();
        assert_eq!(line.turn(&nodes[0], &none), Turn::Holds);
        assert_eq!(line.turn(&nodes[1], &none), Turn::Waits(Blocker::Line));
        assert_eq!(line.turn(&nodes[2], &none), Turn::Waits(Blocker::Changed(nodes[1].clone())));
    }

    #[test]
    fn only_those_before_us_are_in_conflict() {
        let (lock, semaphore) = (node(0, Mode::Exclusive, 0), node(1, permits_of(1, 3), 1));
        let line = Line::of(vec![lock.clone(), semaphore.clone()]);
        assert_eq!(line.conflict(Some(&lock), Mode::Exclusive), None);
        assert_eq!(line.conflict(Some(&semaphore), permits_of(1, 3)), Some(Kind::Lock));
        assert!(Line::of(vec![LATCH.to_owned()]).conflict(None, Mode::Shared).is_some());
    }
}
