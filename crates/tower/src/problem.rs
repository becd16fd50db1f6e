//! What is answered in place of the inner service, as `application/problem+json`: a status, a kind for programs, a sentence
//! for people.
//!
//! Whoever reads it is a client of the service, not its operator: what a store said, addresses and users stay in the log.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use leasehold_core::{
    Error, ErrorKind, Operation,
    backend::{Busy, Holder, Loss},
};
use serde_json::{Map, Value, json};

use crate::body::LockedBody;

/// What to answer when somebody else has the lock. Both come with `Retry-After`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusyStatus {
    /// 423 Locked: it says what is the matter.
    #[default]
    Locked,
    /// 503 Service Unavailable: clients and proxies that never heard of 423 ask again by themselves.
    Unavailable,
}

/// Whether clients are told who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holders {
    Shown,
    Hidden,
}

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    more: Map<String, Value>,
    retry_after: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self { status, kind, detail: detail.into(), more: Map::new(), retry_after: None }
    }

    /// Somebody else has the lock.
    pub(crate) fn busy(busy: &Busy, status: BusyStatus, shown: Holders) -> Self {
        let status = match status {
            BusyStatus::Locked => StatusCode::LOCKED,
            BusyStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut problem = Self::new(status, "busy", "this is in use by another request; try again later");
        if shown == Holders::Shown {
            let now = Timestamp::now();
            let holders = busy.holders.iter().map(|holder| described(holder, now)).collect();
            problem.more.insert("holders".to_owned(), Value::Array(holders));
        }
        problem
    }

    /// The service's own key function will not have this request.
    pub(crate) fn refused(reason: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "refused", reason)
    }

    /// A handler that wants a lock has none.
    #[cfg(feature = "axum")]
    pub(crate) fn without_lock() -> Self {
        tracing::error!("a handler wants a Held, but no LockLayer above it held a lock for this request");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "this service is not set up as it should be")
    }

    /// When to ask again; rounded up, since a second too soon is a request for nothing.
    pub(crate) fn after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after.as_secs() + u64::from(after.subsec_nanos() > 0));
        self
    }

    pub(crate) fn answer<B>(self) -> Response<LockedBody<B>> {
        let Self { status, kind, detail, more, retry_after } = self;
        let title = status.canonical_reason().unwrap_or("error").to_lowercase();
        let mut text = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "kind": kind,
            "detail": detail });
        if let Value::Object(text) = &mut text {
            text.extend(more);
        }
        let mut response = Response::new(LockedBody::problem(text.to_string().into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// The lock could not be acquired, for another reason than that somebody has it.
pub(crate) fn failed(error: &Error, retry_after: Duration) -> Problem {
    tracing::warn!(%error, "a request is not served: its lock could not be acquired");
    match error.kind() {
        ErrorKind::Config if error.operation() == Operation::Name => {
            Problem::new(StatusCode::BAD_REQUEST, "config", "this request cannot be made the name of a lock")
        }
        ErrorKind::Config | ErrorKind::Unsupported | ErrorKind::Conflict | ErrorKind::WouldDeadlock => {
            let detail = "this service is not set up as it should be";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        }
        ErrorKind::Closed => {
            let detail = "this service is shutting down; try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closed", detail).after(retry_after)
        }
        ErrorKind::Capacity => {
            let detail = "too many requests wait for locks here; nothing was done; try again later";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "capacity", detail).after(retry_after)
        }
        _ => {
            let detail = "the store of locks does not serve us now; nothing was done; try again later";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).after(retry_after)
        }
    }
}

/// The lock was lost before there was a response. What was done by then is done, so that asking again is not for a proxy to
/// decide, unless it is this service that goes away.
pub(crate) fn lost(loss: &Loss, retry_after: Duration) -> Problem {
    tracing::warn!(%loss, "a request was stopped: its lock was lost");
    if *loss == Loss::Shutdown {
        let detail = "this service is shutting down and has stopped this request half-way";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "lost", detail).after(retry_after);
    }
    let detail = "the lock on this was lost, and the request was stopped half-way; look before trying again";
    Problem::new(StatusCode::CONFLICT, "lost", detail)
}

fn described(holder: &Holder, now: Timestamp) -> Value {
    let age = SignedDuration::try_from(holder.held_for).unwrap_or(SignedDuration::MAX);
    let since = now.saturating_sub(age).unwrap_or(Timestamp::MIN);
    json!({ "host": &*holder.who.host, "program": &*holder.who.program, "label": holder.label.as_deref(),
        "since": format!("{since:.3}"), "expires_in_ms": holder.remaining.as_millis() as u64 })
}
