//! Jobs that run once per slot across a fleet, how they went, and pausing them.

use axum::extract::State;
use serde_json::{Value, json};

use super::{Answer, Asked, Paged, answer};
use crate::{console::Console, job_view};

pub(super) async fn list(State(console): State<Console>, Asked(paged): Asked<Paged>) -> Answer {
    let limit = paged.limit(200)?;
    let client = console.client();
    if !client.info().capabilities.cells {
        let note = "this store keeps no values beside its locks, so it has no jobs";
        return answer(json!({ "jobs": [], "next": null, "note": note }));
    }
    let page = client.jobs("", paged.cursor(), limit).await?;
    let jobs: Vec<Value> = page.jobs.iter().map(job_view::of).collect();
    answer(json!({ "jobs": jobs, "next": page.next, "note": null }))
}
