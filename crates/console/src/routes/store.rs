//! The store: whether it answers, what its locks are worth, and what would make them worth less.
//!
//! Only what can be found out by looking is found out here; `leasehold doctor` takes locks as well.

use std::{sync::Arc, time::Duration, time::Instant};

use axum::extract::State;
use jiff::Timestamp;
use leasehold::backend::{Finding, Severity, StoreInfo};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Answer, answer};
use crate::{
    console::Console,
    view::{self, FindingView, millis},
};

/// An examination is good for this long.
const FRESH: Duration = Duration::from_secs(30);

/// What was found when the store was examined last.
#[derive(Debug, Default)]
pub(crate) struct Examined(Mutex<Option<Arc<Examination>>>);

#[derive(Debug)]
struct Examination {
    begun: Instant,
    at: Timestamp,
    findings: Vec<Finding>,
}

pub(super) async fn show(State(console): State<Console>) -> Answer {
    let (asked, state) = (console.store(), console.live().state());
    let (info, examination) = (asked.info(), examine(&console).await);
    let findings: Vec<_> = examination.findings.iter().map(FindingView::of).collect();
    let worst = examination.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good);
    answer(json!({ "scheme": info.scheme, "address": info.address, "prefix": asked.prefix(),
        "up": console.live().up().unwrap_or(false), "error": state.error, "latency_ms": state.latency(),
        "guarantee": guarantee(info), "capabilities": capabilities(info),
        "examined_at": view::time(examination.at), "worst": view::severity(worst), "findings": findings }))
}

/// What the locks of a store are worth.
pub(super) fn guarantee(info: &StoreInfo) -> Value {
    let level = info.guarantee.level;
    json!({ "level": level.to_string(), "meaning": level.meaning(), "unless": info.guarantee.unless })
}

/// One examination at a time, whoever asks.
async fn examine(console: &Console) -> Arc<Examination> {
    let mut known = console.examined().0.lock().await;
    if let Some(known) = known.as_ref().filter(|known| known.begun.elapsed() < FRESH) {
        return known.clone();
    }
    let (begun, at) = (Instant::now(), Timestamp::now());
    let findings = console.store().examine().await.unwrap_or_else(|error| {
        vec![
            Finding::danger("examination", format!("the store cannot be examined: {error}"))
                .because("nobody knows what its locks are worth")
                .remedy("see to what the message says, and examine it again"),
        ]
    });
    known.insert(Arc::new(Examination { begun, at, findings })).clone()
}

fn capabilities(info: &StoreInfo) -> Value {
    let can = &info.capabilities;
    json!({ "shared": can.shared, "permits": can.permits, "fair": can.fair, "latch": can.latch, "cells": can.cells,
        "rate": can.rate, "detached": can.detached, "cohort": can.cohort, "min_ttl_ms": millis(can.min_ttl),
        "max_ttl_ms": millis(can.max_ttl), "poll_ms": millis(can.poll) })
}
