//! Jobs that run once per slot across a fleet, how they went, and pausing them.
//!
//! Who paused a job and why is kept with the job for as long as the pause lasts; the audit has it for longer.

use axum::{body::Bytes, extract::State};
use leasehold::{Error, JobState, job::Paused};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Answer, Asked, Name, Paged, answer,
    operator::{self, Operator},
    read,
};
use crate::{console::Console, job_view, store::Store};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    reason: String,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    by: Option<String>,
}

pub(super) async fn list(State(console): State<Console>, Asked(paged): Asked<Paged>) -> Answer {
    let limit = paged.limit(200)?;
    let store = console.store();
    if !store.info().capabilities.cells {
        let note = "this store keeps no values beside its locks, so it has no jobs";
        return answer(json!({ "jobs": [], "next": null, "note": note }));
    }
    let page = store.jobs(paged.cursor(), limit).await?;
    let mut jobs = Vec::with_capacity(page.jobs.len());
    for job in page.jobs {
        jobs.push(job_view::of(&looked_after(store, job).await?));
    }
    answer(json!({ "jobs": jobs, "next": page.next, "note": null }))
}

pub(super) async fn pause(
    State(console): State<Console>,
    operator: Operator,
    Name(name): Name,
    body: Bytes,
) -> Answer {
    let Pause { reason, by } = read(&body)?;
    let (reason, by) = (operator::reason(&reason)?, operator.named(by.as_deref())?);
    let before = console.store().pause(&name, &by, reason).await?;
    tracing::info!(name, by, reason, "a job was paused by an operator");
    changed(console.store(), &name, before.as_ref()).await
}

pub(super) async fn resume(
    State(console): State<Console>,
    operator: Operator,
    Name(name): Name,
    body: Bytes,
) -> Answer {
    let Resume { by } = read(&body)?;
    let by = operator.named(by.as_deref())?;
    let before = console.store().resume(&name, &by).await?;
    if before.is_some() {
        tracing::info!(name, by, "a job was resumed by an operator");
    }
    changed(console.store(), &name, before.as_ref()).await
}

/// A page of jobs does not tell whether whoever began a run still lives; who looks at a running one wants to know.
async fn looked_after(store: &Store, job: JobState) -> Result<JobState, Error> {
    if job.running.is_none() {
        return Ok(job);
    }
    Ok(store.job(&job.name).await?.unwrap_or(job))
}

/// The job as it is now, and the pause that it was in before.
async fn changed(store: &Store, name: &str, before: Option<&Paused>) -> Answer {
    let state: Option<Value> = store.job(name).await?.as_ref().map(job_view::of);
    answer(json!({ "job": state, "before": before.map(job_view::pause) }))
}
