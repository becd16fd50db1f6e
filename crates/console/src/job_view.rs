//! What is known of a job, as programs get it: the JSON shape, which is a promise.
//!
//! Times here are the store's own, where it has a clock: that is what a job's slots are decided by.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leasehold::{
    JobState,
    job::{Ended, PastRun, Paused, Start},
};
use serde_json::{Value, json};

/// All that is known of it.
pub fn of(job: &JobState) -> Value {
    json!({
        "name": job.name,
        "state": condition(job),
        "schedule": job.schedule,
        "zone": job.zone,
        "last": job.last.map(|slot| slot.to_string()),
        "next": job.next.map(|slot| slot.to_string()),
        "ahead_ms": job.ahead.map(|ahead| ahead.as_millis() as u64),
        "rests_until": job.rests_until.map(moment),
        "paused": job.paused.as_ref().map(pause),
        "running": job.running.as_ref().map(|it| started(json!({ "slot": it.slot.to_string() }), Some(&it.start))),
        "runs": job.runs.iter().map(run_view).collect::<Vec<_>>(),
        "totals": job.totals,
    })
}

/// Who paused it, why and since when.
pub fn pause(paused: &Paused) -> Value {
    json!({ "by": paused.by, "why": paused.why, "since": moment(paused.since) })
}

fn run_view(run: &PastRun) -> Value {
    let mut view = json!({
        "slot": run.slot.to_string(),
        "outcome": word(&run.ended),
        "took_ms": run.took.map(|took: Duration| took.as_millis() as u64),
    });
    match &run.ended {
        Ended::Failed(why) | Ended::Lost(why) => view["why"] = why.as_str().into(),
        Ended::Missed { from, count } => {
            view["from"] = from.to_string().into();
            view["count"] = (*count).into();
        }
        _ => {}
    }
    started(view, run.start.as_ref())
}

fn started(mut view: Value, start: Option<&Start>) -> Value {
    if let Some(start) = start {
        view["id"] = start.id.to_string().into();
        view["fence"] = start.fence.into();
        view["fence_text"] = start.fence.to_string().into();
        view["host"] = (*start.who.host).into();
        view["pid"] = start.who.pid.into();
        view["program"] = (*start.who.program).into();
        view["started"] = moment(start.at).into();
    }
    view
}

/// What it does now, in a word.
pub fn condition(job: &JobState) -> &'static str {
    match job {
        JobState { running: Some(_), .. } => "running",
        JobState { paused: Some(_), .. } => "paused",
        JobState { rests_until: Some(_), .. } => "resting",
        _ => "waiting",
    }
}

/// What became of a slot, in a word.
pub fn word(ended: &Ended) -> &'static str {
    match ended {
        Ended::Done => "done",
        Ended::Failed(_) => "failed",
        Ended::Lost(_) => "lost",
        Ended::Died => "died",
        Ended::Missed { .. } => "missed",
        _ => "ended",
    }
}

/// A time since 1970, as the store's clock told it.
pub fn moment(since_1970: Duration) -> String {
    let since = SignedDuration::try_from(since_1970).unwrap_or(SignedDuration::MAX);
    let then = Timestamp::UNIX_EPOCH.saturating_add(since).unwrap_or(Timestamp::MAX);
    format!("{then:.3}")
}
