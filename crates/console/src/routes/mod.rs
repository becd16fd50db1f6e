//! What can be asked, and who answers: one file for each thing.

mod audit;
mod break_hold;
mod elections;
mod events;
mod health;
mod jobs;
mod locks;
mod operator;
mod overview;
mod session;
pub(crate) mod store;
mod tickets;
mod waits;

use axum::{
    Router,
    body::Bytes,
    extract::{FromRequestParts, Path, Query},
    http::{StatusCode, header, request::Parts},
    middleware,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{console::Console, gatekeeper, metrics, page, problem::Problem, view};

/// The description of everything here, for machines.
const OPENAPI: &str = include_str!("../openapi.json");

/// Every route: its method, where it is, who answers.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Console>)> {
    vec![
        ("get", "/api/v1/session", get(session::show)),
        ("get", "/api/v1/overview", get(overview::show)),
        ("get", "/api/v1/locks", get(locks::list)),
        ("get", "/api/v1/locks/{name}", get(locks::show)),
        ("post", "/api/v1/locks/{name}/break", post(break_hold::run)),
        ("post", "/api/v1/locks/{name}/acquire", post(tickets::acquire)),
        ("post", "/api/v1/locks/{name}/renew", post(tickets::renew)),
        ("post", "/api/v1/locks/{name}/release", post(tickets::release)),
        ("get", "/api/v1/waits", get(waits::show)),
        ("get", "/api/v1/audit", get(audit::list)),
        ("get", "/api/v1/jobs", get(jobs::list)),
        ("post", "/api/v1/jobs/{name}/pause", post(jobs::pause)),
        ("post", "/api/v1/jobs/{name}/resume", post(jobs::resume)),
        ("get", "/api/v1/elections", get(elections::list)),
        ("get", "/api/v1/store", get(store::show)),
        ("get", "/api/v1/events", get(events::stream)),
        ("get", "/api/v1/openapi.json", get(openapi)),
        ("get", "/metrics", get(metrics::show)),
        ("get", "/healthz", get(health::lives)),
        ("get", "/readyz", get(health::ready)),
    ]
}

/// Everything that answers. Needs no socket: tests may call it.
pub fn router(console: Console) -> Router {
    let mut router = Router::new();
    for (method, path, answers) in table() {
        let methods = if method == "get" { READS } else { "POST" };
        router = router.route(path, answers.fallback(async move || wrong_method(methods)));
    }
    router
        .fallback(get(page::serve).fallback(async || wrong_method(READS)))
        .layer(middleware::from_fn_with_state(console.clone(), gatekeeper::admit))
        .with_state(console)
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// What can be done where nothing is changed.
const READS: &str = "GET, HEAD";

fn wrong_method(methods: &'static str) -> Problem {
    let detail = "that cannot be done here; see /api/v1/openapi.json";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail).allow(methods)
}

/// An answer.
type Answer = Result<Response, Problem>;

/// A JSON object, with the time of this server.
#[expect(clippy::unnecessary_wraps, reason = "it is how every route ends")]
fn answer(mut body: Value) -> Answer {
    if let Value::Object(body) = &mut body {
        body.insert("now".to_owned(), view::time(jiff::Timestamp::now()).into());
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response())
}

/// The body of a request, as what it should be. A list would pass for an object whose members have no names.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    let object = serde_json::from_slice::<serde_json::Map<String, Value>>(body);
    let read = object.and_then(|object| serde_json::from_value(Value::Object(object)));
    read.map_err(|error| Problem::config(format!("the body makes no sense: {error}")))
}

/// The lock or job a request is about: `?name=` if it is there, else the part of the path.
#[derive(Debug)]
struct Name(String);

impl FromRequestParts<Console> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Named {
            name: Option<String>,
        }
        let nonsense = || Problem::config("the name makes no sense; encode it as UTF-8 and percent signs");
        let Query(named) = Query::<Named>::try_from_uri(&parts.uri).map_err(|_| nonsense())?;
        if let Some(name) = named.name {
            return Ok(Self(name));
        }
        let Path(name) = Path::<String>::from_request_parts(parts, console).await.map_err(|_| nonsense())?;
        Ok(Self(name))
    }
}

/// What the part of an address after the question mark says.
struct Asked<T>(T);

impl<T: DeserializeOwned> FromRequestParts<Console> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Console) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(Problem::config(format!("the question makes no sense: {}", error.body_text()))),
        }
    }
}

/// A page of something.
#[derive(Debug, Deserialize)]
struct Paged {
    cursor: Option<String>,
    limit: Option<usize>,
}

impl Paged {
    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref().filter(|cursor| !cursor.is_empty())
    }

    fn limit(&self, most: usize) -> Result<usize, Problem> {
        limit(self.limit, most)
    }
}

fn limit(limit: Option<usize>, most: usize) -> Result<usize, Problem> {
    match limit.unwrap_or(100) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(Problem::config(format!("a limit is 1 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_description_has_every_route_and_no_other() {
        let description: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = description["paths"].as_object().unwrap();
        let described: BTreeSet<_> = paths
            .iter()
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().keys().map(move |method| (method.as_str(), path.as_str()))
            })
            .collect();
        let routes = table();
        let routes: BTreeSet<_> = routes.iter().map(|(method, path, _)| (*method, *path)).collect();
        assert_eq!(described, routes);
    }
}
