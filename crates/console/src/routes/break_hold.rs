//! Taking a lock away from a holder that will not give it back.
//!
//! It names exactly one acquisition: a page that shows an old state cannot break a newer hold.

use axum::{body::Bytes, extract::State, http::StatusCode};
use leasehold::{
    ClaimId, Forced,
    backend::{BreakOutcome, Broken},
};
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Name, answer, operator::Operator, read};
use crate::{console::Console, problem::Problem, view::LockView};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Break {
    id: String,
    reason: String,
    by: Option<String>,
}

pub(super) async fn run(
    State(console): State<Console>,
    operator: Operator,
    Name(name): Name,
    body: Bytes,
) -> Answer {
    let Break { id, reason, by } = read(&body)?;
    let id: ClaimId = id.parse()?;
    let broken = Broken { by: operator.named(by.as_deref())?.into(), why: reason.into() };
    let Forced { outcome, unaudited, .. } = console.store().break_hold(&name, id, broken).await?;
    if outcome == BreakOutcome::Broken {
        console.live().broke(id);
        tracing::info!(name, %id, "a lock was broken by an operator");
        let note = unaudited.map(|error| format!("it was broken, but the audit has no entry of it: {error}"));
        return answer(json!({ "broken": true, "name": name, "id": id, "note": note }));
    }
    let state = console.store().inspect(&name).await?;
    let lock = LockView::of_any(&name, state.as_ref(), jiff::Timestamp::now());
    let detail = "it has changed hands since: that acquisition holds it no more, and nothing was broken";
    Err(Problem::new(StatusCode::CONFLICT, "changed_hands", detail).with("lock", json!(lock)))
}
