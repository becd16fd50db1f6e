//! Taking a lock away from a holder that will not give it back.
//!
//! It names exactly one acquisition: a page that shows an old state cannot break a newer hold.

use axum::{Extension, body::Bytes, extract::State, http::StatusCode};
use leasehold::{
    ClaimId,
    backend::{BreakOutcome, Broken},
};
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Name, answer, read};
use crate::{console::Console, problem::Problem, serve::Peer, view::LockView};

const REASON: usize = 500;
const BY: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Break {
    id: String,
    reason: String,
    by: Option<String>,
}

pub(super) async fn run(
    State(console): State<Console>,
    peer: Option<Extension<Peer>>,
    Name(name): Name,
    body: Bytes,
) -> Answer {
    let Break { id, reason, by } = read(&body)?;
    let id: ClaimId = id.parse()?;
    let reason = reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON {
        return Err(Problem::config(format!(
            "say why, in 1 to {REASON} characters: the holder is told, and it is kept"
        )));
    }
    let by = by.as_deref().map(str::trim).filter(|by| !by.is_empty()).unwrap_or("somebody");
    if by.chars().count() > BY {
        return Err(Problem::config(format!("a name of at most {BY} characters will do")));
    }
    // What somebody calls themself proves nothing; where they called from is ours to say.
    let from = peer.map_or_else(String::new, |Extension(Peer(peer))| format!(" from {}", peer.ip()));
    let broken = Broken { by: format!("{by} (operator{from})").into(), why: reason.into() };
    let outcome = console.client().break_hold_as(&name, id, broken).await?;
    if outcome == BreakOutcome::Broken {
        tracing::info!(name, %id, "a lock was broken by an operator");
        return answer(json!({ "broken": true, "name": name, "id": id }));
    }
    let state = console.client().inspect(&name).await?;
    let lock = LockView::of_any(&name, state.as_ref(), jiff::Timestamp::now());
    let detail = "it has changed hands since: that acquisition holds it no more, and nothing was broken";
    Err(Problem::new(StatusCode::CONFLICT, "changed_hands", detail).with("lock", json!(lock)))
}
