//! How it stands, at a glance.

use std::{cmp::Reverse, time::Duration};

use axum::extract::State;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Answer, answer, store};
use crate::{
    console::Console,
    live::State as Known,
    series::STEP,
    view::{self, HolderView, WaiterView, millis},
};

/// So many of the longest.
const LONGEST: usize = 5;

pub(super) async fn show(State(console): State<Console>) -> Answer {
    let (state, now) = (console.live().state(), Timestamp::now());
    let (asked, (streams, max_streams)) = (console.store(), console.streams());
    let busy = asked.stats();
    answer(
        json!({ "up": console.live().up().unwrap_or(false), "error": state.error, "latency_ms": state.latency(),
        "counts": state.counts, "complete": state.complete(), "swept_at": state.at.map(view::time),
        "sweep_ms": state.seen.as_ref().map(|seen| millis(seen.took)),
        "series": { "step_ms": millis(STEP), "points": state.points() },
        "longest_waits": waits(&state, now), "longest_holds": holds(&state, now),
        "guarantee": store::guarantee(asked.info()),
        "server": { "version": env!("CARGO_PKG_VERSION"), "uptime_ms": millis(console.started().elapsed()),
            "streams": streams, "max_streams": max_streams,
            "held": busy.held, "waiting": busy.waiting, "tidying": busy.tidying } }),
    )
}

fn waits(state: &Known, now: Timestamp) -> Vec<Value> {
    let locks = state.seen.iter().flat_map(|seen| seen.locks.values());
    let all = locks.flat_map(|lock| lock.waiters.iter().map(|waiter| (waiter.waited, (&lock.name, waiter))));
    let longest = longest(all.collect());
    let show = |(waited, (name, waiter))| json!({ "name": name, "waited_ms": millis(waited), "waiter": WaiterView::of(waiter, now) });
    longest.into_iter().map(show).collect()
}

fn holds(state: &Known, now: Timestamp) -> Vec<Value> {
    let locks = state.seen.iter().flat_map(|seen| seen.locks.values());
    let all =
        locks.flat_map(|lock| lock.holders.iter().map(|holder| (holder.held_for, (&lock.name, holder))));
    let longest = longest(all.collect());
    let show = |(held, (name, holder))| json!({ "name": name, "held_ms": millis(held), "holder": HolderView::of(holder, now) });
    longest.into_iter().map(show).collect()
}

fn longest<T>(mut all: Vec<(Duration, T)>) -> Vec<(Duration, T)> {
    all.sort_by_key(|(length, _)| Reverse(*length));
    all.truncate(LONGEST);
    all
}
