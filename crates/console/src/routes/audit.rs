//! Who broke which lock, who paused which job, when and why.

use axum::extract::State;
use jiff::Timestamp;
use leasehold::{AuditEntry, AuditPage};
use serde_json::{Value, json};

use super::{Answer, Asked, Paged, answer};
use crate::{
    console::Console,
    view::{self, WhoView},
};

pub(super) async fn list(State(console): State<Console>, Asked(paged): Asked<Paged>) -> Answer {
    let limit = paged.limit(500)?;
    if !console.store().info().capabilities.cells {
        let note = "this store keeps no values beside its locks, so it has no audit";
        return answer(json!({ "entries": [], "next": null, "note": note }));
    }
    let AuditPage { entries, next } = console.store().audit(paged.cursor(), limit).await?;
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    answer(json!({ "entries": entries, "next": next, "note": null }))
}

fn entry(entry: &AuditEntry) -> Value {
    let at = i64::try_from(entry.at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let holder = entry.holder.as_ref().map(|who| {
        let mut holder = json!(WhoView::of(who));
        holder["label"] = json!(entry.label);
        holder
    });
    json!({ "at": at.map(view::time), "action": entry.action, "name": entry.name, "id": entry.id, "by": entry.by,
        "reason": entry.why, "holder": holder, "fence": entry.fence, "fence_text": entry.fence.to_string(),
        "unsure": entry.unsure })
}
