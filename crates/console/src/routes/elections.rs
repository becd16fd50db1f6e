//! Who leads, what it says of itself, and who would lead next.

use axum::extract::State;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Answer, Asked, Paged, answer};
use crate::{
    console::Console,
    problem::Problem,
    view::{HolderView, WaiterView},
};

pub(super) async fn list(State(console): State<Console>, Asked(paged): Asked<Paged>) -> Answer {
    let limit = paged.limit(200)?;
    let store = console.store();
    if !store.info().capabilities.cells {
        let note = "this store keeps no values beside its locks, so it has no elections";
        return answer(json!({ "elections": [], "next": null, "note": note }));
    }
    let (names, next) = store.elections(paged.cursor(), limit).await?;
    let mut elections = Vec::with_capacity(names.len());
    for name in names {
        elections.push(one(&console, name).await?);
    }
    answer(json!({ "elections": elections, "next": next, "note": null }))
}

async fn one(console: &Console, name: String) -> Result<Value, Problem> {
    let store = console.store();
    let (leader, state, now) = (store.leader(&name).await?, store.inspect(&name).await?, Timestamp::now());
    let holder = leader.as_ref().and_then(|leader| {
        let holders = state.iter().flat_map(|state| &state.holders);
        holders.into_iter().find(|holder| holder.id == leader.id)
    });
    let waiters = state.iter().flat_map(|state| &state.waiters);
    let value = leader.as_ref().and_then(|leader| String::from_utf8(leader.value.clone()?).ok());
    Ok(json!({ "name": name, "value": value, "leader": holder.map(|holder| HolderView::of(holder, now)),
        "candidates": waiters.map(|waiter| WaiterView::of(waiter, now)).collect::<Vec<_>>() }))
}
