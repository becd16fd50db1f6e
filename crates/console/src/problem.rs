//! What went wrong, as `application/problem+json`: a status, a kind for programs, a sentence for people.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use leasehold::{Error, ErrorKind, backend::Loss};
use serde_json::{Map, Value, json};

use crate::view::{self, HolderView};

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    more: Map<String, Value>,
    retry_after: Option<u64>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self { status, kind, detail: detail.into(), more: Map::new(), retry_after: None, allow: None }
    }

    pub(crate) fn config(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "config", detail)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is nothing here; see /api/v1/openapi.json")
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn too_many(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", detail).retry_after(10)
    }

    /// The same with one more member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// The methods that would have been right.
    pub(crate) fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, kind, detail, more, retry_after, allow } = self;
        let title = status.canonical_reason().unwrap_or("error").to_lowercase();
        let mut body = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "kind": kind,
            "detail": detail, "now": view::time(jiff::Timestamp::now()) });
        if let Value::Object(body) = &mut body {
            body.extend(more);
        }
        let mut response = (status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(methods) = allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(methods));
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The one place where a store's trouble becomes a status.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, kind) = match error.kind() {
            ErrorKind::Config => (StatusCode::BAD_REQUEST, "config"),
            ErrorKind::Unsupported => (StatusCode::NOT_IMPLEMENTED, "unsupported"),
            ErrorKind::Busy => (StatusCode::LOCKED, "busy"),
            ErrorKind::Lost => (StatusCode::GONE, "lost"),
            ErrorKind::Conflict | ErrorKind::WouldDeadlock => (StatusCode::CONFLICT, "conflict"),
            ErrorKind::Indeterminate => (StatusCode::SERVICE_UNAVAILABLE, "indeterminate"),
            ErrorKind::Denied => (StatusCode::BAD_GATEWAY, "denied"),
            ErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            ErrorKind::Capacity => (StatusCode::SERVICE_UNAVAILABLE, "capacity"),
            ErrorKind::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closed"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        let mut problem = Self::new(status, kind, error.to_string());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            problem = problem.retry_after(1);
        }
        if let Some(busy) = error.busy() {
            let now = jiff::Timestamp::now();
            let holders: Vec<_> = busy.holders.iter().map(|holder| HolderView::of(holder, now)).collect();
            let after = busy.retry_after.map(|after| after.as_millis() as u64);
            problem = problem.with("holders", json!(holders)).with("waiters", busy.waiters);
            problem = problem.with("place", busy.place).with("retry_after_ms", after).retry_after(1);
        }
        match error.loss() {
            Some(Loss::Broken(broken)) => {
                problem.with("loss", "broken").with("by", &*broken.by).with("why", &*broken.why)
            }
            Some(Loss::Expired) => problem.with("loss", "expired"),
            Some(_) => problem.with("loss", "gone"),
            None => problem,
        }
    }
}
