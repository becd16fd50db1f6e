//! Who decides about which slot of a cluster: the map, and how servers tell it.
//!
//! Pure: nothing here sends anything. A map never changes; another takes its place.

use std::sync::Arc;

use redis::Value;

use super::Node;
use crate::{
    answer::{list, number, text},
    config::Address,
};

/// How many slots there are.
pub(super) const SLOTS: usize = 16384;

const NOBODY: u16 = u16::MAX;

/// A primary and where it is.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) address: Address,
    pub(super) node: Arc<Node>,
}

/// Which server decides about which slot.
#[derive(Debug)]
pub(super) struct Map {
    /// For each slot, which of the members.
    owners: Box<[u16]>,
    /// Primaries, in the order of their first slots.
    members: Vec<Member>,
    /// Servers that decide about nothing but know the map, too.
    pub(super) others: Vec<Address>,
}

/// What a server says of the slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// First slot, last slot, and who decides about them.
    pub(super) ranges: Vec<(u16, u16, Address)>,
    pub(super) replicas: Vec<Address>,
}

impl Map {
    /// Of what was told, with nodes as `node` finds or makes them.
    pub(super) fn new(told: Told, mut node: impl FnMut(&Address) -> Arc<Node>) -> Self {
        let Told { mut ranges, replicas } = told;
        ranges.sort_unstable_by_key(|(first, ..)| *first);
        let mut owners = vec![NOBODY; SLOTS].into_boxed_slice();
        let mut members: Vec<Member> = Vec::new();
        for (first, last, address) in ranges {
            let known = members.iter().position(|member| member.address == address);
            let at = known.unwrap_or_else(|| {
                members.push(Member { node: node(&address), address });
                members.len() - 1
            });
            owners[usize::from(first)..=usize::from(last)].fill(u16::try_from(at).unwrap_or(NOBODY));
        }
        Self { owners, members, others: replicas }
    }

    /// Who decides about a slot, if anybody.
    pub(super) fn owner(&self, slot: u16) -> Option<&Member> {
        self.members.get(usize::from(self.owners[usize::from(slot) % SLOTS]))
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The same, but for one slot.
    pub(super) fn with(&self, slot: u16, owner: Member) -> Self {
        let (mut owners, mut members) = (self.owners.clone(), self.members.clone());
        let known = members.iter().position(|member| Arc::ptr_eq(&member.node, &owner.node));
        let at = known.unwrap_or_else(|| {
            members.push(owner);
            members.len() - 1
        });
        owners[usize::from(slot) % SLOTS] = u16::try_from(at).unwrap_or(NOBODY);
        Self { owners, members, others: self.others.clone() }
    }

    /// Whether a member decides about all that it decided about before.
    pub(super) fn keeps(&self, before: &Self, node: &Arc<Node>) -> bool {
        let is = |member: Option<&Member>| member.is_some_and(|member| Arc::ptr_eq(&member.node, node));
        (0..).take(SLOTS).all(|slot| !is(before.owner(slot)) || is(self.owner(slot)))
    }
}

/// The answer to `CLUSTER SLOTS`, asked at this address. `None` if it makes no sense or names nobody.
pub(super) fn told(answer: &Value, asked: &Address) -> Option<Told> {
    let mut told = Told::default();
    for range in list(answer)? {
        let [first, last, primary, replicas @ ..] = list(range)? else { return None };
        let slot = |value| u16::try_from(number(value)?).ok().filter(|slot| usize::from(*slot) < SLOTS);
        let (first, last) = (slot(first)?, slot(last)?);
        if first > last {
            return None;
        }
        told.ranges.push((first, last, place(primary, asked)?));
        for replica in replicas.iter().filter_map(|replica| place(replica, asked)) {
            if !told.replicas.contains(&replica) {
                told.replicas.push(replica);
            }
        }
    }
    (!told.ranges.is_empty()).then_some(told)
}

/// Where a server is, as another one tells. One that does not know its own name is where we asked.
fn place(server: &Value, asked: &Address) -> Option<Address> {
    let [host, port, ..] = list(server)? else { return None };
    let host = text(host).unwrap_or_default();
    at(&host, u16::try_from(number(port)?).ok()?, asked)
}

/// The slot and the address in `MOVED 3999 host:port` or `ASK 3999 host:port`, without the first word.
pub(super) fn pointed(details: &str, by: &Address) -> Option<(u16, Address)> {
    let (slot, place) = details.split_once(' ')?;
    let (host, port) = place.split_whitespace().next()?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((slot.parse().ok()?, at(host, port.parse().ok()?, by)?))
}

fn at(host: &str, port: u16, near: &Address) -> Option<Address> {
    let Address::Tcp { host: here, tls, .. } = near else { return None };
    let host = if matches!(host, "" | "?") { here } else { host };
    Some(Address::Tcp { host: host.to_owned(), port, tls: *tls })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, proptest, test_runner::Config};

    use super::*;
    use crate::fuzz;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port, tls: true }
    }

    fn server(host: Value, port: i64) -> Value {
        let id = Value::BulkString(b"id".to_vec());
        Value::Array(vec![host, Value::Int(port), id, Value::Map(Vec::new())])
    }

    fn named(host: &str) -> Value {
        Value::BulkString(host.as_bytes().to_vec())
    }

    #[test]
    fn a_server_that_does_not_know_its_name_is_where_it_was_asked() {
        for unknown in [Value::Nil, named(""), named("?")] {
            let range =
                vec![Value::Int(0), Value::Int(16383), server(unknown, 7001), server(named("b"), 7002)];
            let answer = Value::Array(vec![Value::Array(range)]);
            let told = told(&answer, &tcp("asked", 1)).unwrap();
            assert_eq!(told.ranges, [(0, 16383, tcp("asked", 7001))]);
            assert_eq!(told.replicas, [tcp("b", 7002)]);
        }
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_no_map() {
        let range =
            |first, last| Value::Array(vec![Value::Int(first), Value::Int(last), server(named("a"), 1)]);
        for bad in [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![range(5, 16384)]),
            Value::Array(vec![range(9, 8)]),
            Value::Array(vec![range(-1, 8)]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1)])]),
        ] {
            assert_eq!(told(&bad, &tcp("a", 1)), None, "{bad:?}");
        }
    }

    #[test]
    fn a_redirection_says_where_to() {
        let by = tcp("by", 1);
        assert_eq!(pointed("3999 127.0.0.1:6381", &by), Some((3999, tcp("127.0.0.1", 6381))));
        assert_eq!(pointed("1 :6381", &by), Some((1, tcp("by", 6381))));
        assert_eq!(pointed("1 ?:6381", &by), Some((1, tcp("by", 6381))));
        assert_eq!(pointed("1 ::1:6381", &by), Some((1, tcp("::1", 6381))));
        for bad in ["", "1", "x a:1", "1 a", "1 a:x"] {
            assert_eq!(pointed(bad, &by), None, "{bad}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_answer_makes_a_map_of_slots_panic(value in fuzz::value()) {
            drop(told(&value, &tcp("a", 1)));
        }

        #[test]
        fn ranges_of_any_numbers_are_a_map_within_the_slots_or_none(
            ranges in vec((fuzz::number(), fuzz::number(), ".{0,5}", fuzz::number()), 0..5),
        ) {
            let ranges = ranges.into_iter().map(|(first, last, host, port)| {
                Value::Array(vec![first, last, Value::Array(vec![Value::BulkString(host.into()), port])])
            });
            if let Some(told) = told(&Value::Array(ranges.collect()), &tcp("a", 1)) {
                assert!(told.ranges.iter().all(|(first, last, _)| first <= last && usize::from(*last) < SLOTS));
            }
        }

        #[test]
        fn no_redirection_makes_us_panic(details in "[0-9]{0,6} ?[\\[\\]:a-z?.]{0,9}:?[0-9]{0,6}.{0,5}") {
            drop(pointed(&details, &tcp("a", 1)));
        }
    }
}
