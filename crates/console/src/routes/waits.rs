//! Who waits for whom, and where that goes round in a circle.
//!
//! The owners are clients: the tasks of one process are one owner, so a circle is a suspicion, not a proof.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use leasehold::{ClientId, backend::LockState};
use serde_json::{Value, json};

use super::{Answer, answer};
use crate::{
    console::Console,
    view::{self, WhoView, millis},
};

/// The most edges that are told.
const EDGES: usize = 2000;

/// One waits for a name that the other holds.
#[derive(Debug)]
struct Edge<'a> {
    name: &'a str,
    from: ClientId,
    to: ClientId,
    told: Value,
}

pub(super) async fn show(State(console): State<Console>) -> Answer {
    let state = console.live().state();
    let (mut edges, mut owners) = (Vec::new(), BTreeMap::new());
    let locks =
        state.seen.iter().flat_map(|seen| seen.locks.values()).filter(|lock| !lock.waiters.is_empty());
    for lock in locks {
        add(lock, &mut edges, &mut owners);
        if edges.len() > EDGES {
            break;
        }
    }
    let all = edges.len() <= EDGES;
    edges.truncate(EDGES);
    let cycles = cycles(&edges);
    let told: Vec<Value> = edges
        .iter()
        .map(|edge| {
            let mut told = edge.told.clone();
            told["cycle"] =
                cycles.iter().any(|cycle| cycle.contains(&edge.from) && cycle.contains(&edge.to)).into();
            told
        })
        .collect();
    let cycles: Vec<Value> = cycles.iter().map(|cycle| describe(cycle, &edges)).collect();
    answer(
        json!({ "swept_at": state.at.map(view::time), "complete": all && state.complete(), "owners": owners,
        "edges": told, "cycles": cycles }),
    )
}

fn add<'a>(lock: &'a LockState, edges: &mut Vec<Edge<'a>>, owners: &mut BTreeMap<String, WhoView>) {
    for waiter in &lock.waiters {
        owners.entry(waiter.who.client.to_string()).or_insert_with(|| WhoView::of(&waiter.who));
        for holder in &lock.holders {
            // One more than is told says that there are more.
            if edges.len() > EDGES {
                return;
            }
            owners.entry(holder.who.client.to_string()).or_insert_with(|| WhoView::of(&holder.who));
            let (from, to) = (waiter.who.client, holder.who.client);
            let told = json!({ "name": lock.name, "from": from, "to": to, "waiter": waiter.id, "holder": holder.id,
                "waited_ms": millis(waiter.waited) });
            edges.push(Edge { name: &lock.name, from, to, told });
        }
    }
}

fn describe(cycle: &BTreeSet<ClientId>, edges: &[Edge<'_>]) -> Value {
    let within = edges.iter().filter(|edge| cycle.contains(&edge.from) && cycle.contains(&edge.to));
    let names: BTreeSet<&str> = within.map(|edge| edge.name).collect();
    json!({ "owners": cycle, "names": names })
}

/// Those who wait for each other in a circle: groups in which everybody can be reached from everybody.
fn cycles(edges: &[Edge<'_>]) -> Vec<BTreeSet<ClientId>> {
    let mut ahead: BTreeMap<ClientId, BTreeSet<ClientId>> = BTreeMap::new();
    for edge in edges {
        // Another task of the same process holds it: that ends when the task does.
        if edge.from != edge.to {
            ahead.entry(edge.from).or_default().insert(edge.to);
        }
    }
    let (mut found, mut settled) = (Vec::new(), BTreeSet::<ClientId>::new());
    let behind = turned(&ahead);
    for &start in ahead.keys() {
        if settled.contains(&start) {
            continue;
        }
        let group: BTreeSet<_> =
            reached(&ahead, start).intersection(&reached(&behind, start)).copied().collect();
        settled.extend(&group);
        if group.len() > 1 {
            found.push(group);
        }
    }
    found
}

fn turned(ahead: &BTreeMap<ClientId, BTreeSet<ClientId>>) -> BTreeMap<ClientId, BTreeSet<ClientId>> {
    let mut behind: BTreeMap<ClientId, BTreeSet<ClientId>> = BTreeMap::new();
    for (from, to) in ahead.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        behind.entry(*to).or_default().insert(*from);
    }
    behind
}

/// Everybody on a way from here, this one among them.
fn reached(edges: &BTreeMap<ClientId, BTreeSet<ClientId>>, start: ClientId) -> BTreeSet<ClientId> {
    let (mut seen, mut open) = (BTreeSet::from([start]), vec![start]);
    while let Some(here) = open.pop() {
        for next in edges.get(&here).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_lines_are_not() {
        let people: Vec<ClientId> = (0..6).map(|_| ClientId::random()).collect();
        let edges = |pairs: &[(usize, usize)]| {
            let edge =
                |&(from, to)| Edge { name: "n", from: people[from], to: people[to], told: Value::Null };
            cycles(&pairs.iter().map(edge).collect::<Vec<_>>())
        };
        let group = |members: &[usize]| members.iter().map(|&one| people[one]).collect::<BTreeSet<_>>();
        assert!(edges(&[(0, 1), (1, 2), (0, 2), (3, 3)]).is_empty());
        assert_eq!(edges(&[(0, 1), (1, 0), (2, 0)]), [group(&[0, 1])]);
        let two = edges(&[(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 3), (2, 3)]);
        assert_eq!(
            two.iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([&group(&[0, 1, 2]), &group(&[3, 4])])
        );
    }
}
