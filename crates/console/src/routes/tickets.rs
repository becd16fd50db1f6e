//! Locking over HTTP, for any language: the lock is a ticket's, and whoever has the ticket renews and releases it.
//!
//! Tickets are sealed. Whoever could write one by hand could take a lock from a process that it only sees, without a
//! reason and past the audit: that is what breaking is for.

use std::time::Duration;

use axum::{body::Bytes, extract::State, http::StatusCode};
use leasehold::{Error, ErrorKind, Lock, Operation, Ticket};
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Name, answer, read};
use crate::{console::Console, problem::Problem, view::millis};

/// A request waits no longer than this; whoever wants to wait longer asks again.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Acquire {
    ttl: Option<Length>,
    wait: Option<Length>,
    mode: Option<Mode>,
    permits: Option<Permits>,
    fair: bool,
    label: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Exclusive,
    Shared,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Permits {
    take: u32,
    of: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bearing {
    ticket: String,
    ttl: Option<Length>,
}

/// A length of time: text as people write it, or milliseconds.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a length of time is text like \"30s\" or \"1m 30s\", or whole milliseconds")]
enum Length {
    Millis(u64),
    Text(String),
}

pub(super) async fn acquire(State(console): State<Console>, Name(name): Name, body: Bytes) -> Answer {
    let asked: Acquire = read(&body)?;
    let wait = asked.wait.as_ref().map_or(Ok(Duration::ZERO), Length::get)?;
    if wait > LONGEST {
        return Err(Problem::config("a request waits at most 60 s; ask again after that"));
    }
    let lock = lock(&console, &name, &asked)?;
    let (ticket, left) = tokio::select! {
        biased;
        leased = console.store().acquire(lock, wait) => leased?,
        () = console.stopped() => return Err(stopping()),
    };
    answer(
        json!({ "ticket": console.access().seal(&ticket.to_string()), "name": ticket.name(), "id": ticket.id(), "fence": ticket.fence(),
        "fence_text": ticket.fence().to_string(), "ttl_ms": millis(ticket.ttl()), "expires_in_ms": millis(left) }),
    )
}

pub(super) async fn renew(State(console): State<Console>, Name(name): Name, body: Bytes) -> Answer {
    let (ticket, ttl) = bearing(&console, &name, &body)?;
    let granted = console.store().renew(&ticket, ttl).await?;
    answer(json!({ "expires_in_ms": millis(granted) }))
}

pub(super) async fn release(State(console): State<Console>, Name(name): Name, body: Bytes) -> Answer {
    let (ticket, _) = bearing(&console, &name, &body)?;
    console.store().release(&ticket).await?;
    answer(json!({ "released": true }))
}

/// The lock as asked for, except for the wait.
fn lock(console: &Console, name: &str, asked: &Acquire) -> Result<Lock, Problem> {
    let store = console.store();
    let mut lock = match (&asked.permits, &asked.mode) {
        (Some(_), Some(_)) => return Err(Problem::config("give mode or permits, not both")),
        (Some(Permits { take, of }), None) => store.semaphore(name, *of).permits(*take),
        (None, Some(Mode::Shared)) => store.rwlock(name).read(),
        (None, _) => store.lock(name),
    };
    lock = lock.asked_at("a request over HTTP".into());
    if let Some(ttl) = &asked.ttl {
        lock = lock.ttl(ttl.get()?);
    }
    if let Some(label) = &asked.label {
        lock = lock.label(label);
    }
    Ok(if asked.fair { lock.fair() } else { lock })
}

/// The ticket of a request, and the lease it asks for.
fn bearing(console: &Console, name: &str, body: &Bytes) -> Result<(Ticket, Duration), Problem> {
    let Bearing { ticket: sealed, ttl } = read(body)?;
    let (text, seal) = sealed.trim().rsplit_once('/').unwrap_or_default();
    let ticket: Ticket = text.parse().or_else(|_| sealed.parse())?;
    if !console.access().is_sealed(text, seal) {
        let detail = "this ticket was not given out here, or the operator's token has changed since; \
            release it where it came from, or break the hold";
        return Err(Problem::forbidden(detail));
    }
    if ticket.name() != name {
        let detail = "this ticket is for another lock";
        return Err(Problem::new(StatusCode::CONFLICT, "conflict", detail));
    }
    let ttl = ttl.map_or(Ok(ticket.ttl()), |ttl| ttl.get())?;
    Ok((ticket, ttl))
}

fn stopping() -> Problem {
    Error::new(ErrorKind::Closed, Operation::Acquire, "this server is stopping; ask again").into()
}

impl Length {
    fn get(&self) -> Result<Duration, Problem> {
        match self {
            Self::Millis(millis) => Ok(Duration::from_millis(*millis)),
            Self::Text(text) => humantime::parse_duration(text).map_err(|_| {
                Problem::config("not a length of time; write it like \"30s\", \"1m 30s\", or as milliseconds")
            }),
        }
    }
}
