//! Jobs that run once per slot across a fleet.

use serde_json::json;

use super::{Answer, answer};

pub(super) async fn list() -> Answer {
    answer(json!({ "jobs": [], "next": null, "note": "no job has run on this store" }))
}
