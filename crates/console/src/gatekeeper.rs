//! What every request passes before anything else looks at it, and what every answer carries.
//!
//! In this order: the `Host` is ours, so that no foreign name can be pointed at us; the request does not come from a
//! foreign page; the token is right, does not ask too often and its role suffices; what changes anything has a JSON body and a header that no
//! form can send. Nothing is answered by what a browser attaches by itself: there are no cookies.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::{
    access::{Role, Verdict},
    console::Console,
    problem::Problem,
    serve::Peer,
};

/// The largest body.
pub(crate) const BODY: usize = 64 * 1024;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Lets a request in, or says why not.
pub(crate) async fn admit(State(console): State<Console>, request: Request, next: Next) -> Response {
    let mut response = match check(&console, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Those who keep or give back what they hold share a token with those who ask for more, and must not lose it by their haste;
/// and whoever looks whether this server lives must not take it for dead because others are busy.
fn is_never_slowed(request: &Request) -> bool {
    let path = request.uri().path();
    let keeps =
        path.starts_with("/api/v1/locks/") && (path.ends_with("/renew") || path.ends_with("/release"));
    keeps || matches!(path, "/healthz" | "/readyz")
}

async fn check(console: &Console, mut request: Request) -> Result<Request, Problem> {
    let host = host(&request)?;
    if !console.is_ours(host.host()) {
        let detail = "this server is not known by that name; start it with --allow-host to add one";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", detail));
    }
    is_from_here(&request, &host)?;
    let role = role(console, &request)?;
    if !is_never_slowed(&request) {
        console.rates().take(role, peer(&request)).map_err(|wait| too_fast(role, wait))?;
    }
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    if !reads && request.method() != Method::POST {
        return Err(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "only GET and POST are known here",
        )
        .allow("GET, HEAD, POST"));
    }
    let needed = match request.uri().path() {
        _ if !reads => Role::Operator,
        "/api/v1/session" => Role::Nobody,
        path if path.starts_with("/api/") || path == "/metrics" => Role::Viewer,
        _ => Role::Nobody,
    };
    let given = if reads && console.access().is_open() { role.max(Role::Viewer) } else { role };
    match given {
        _ if given >= needed => {}
        Role::Nobody => {
            return Err(Problem::unauthorized("a token is needed: send Authorization: Bearer TOKEN"));
        }
        _ => return Err(Problem::forbidden("a viewer changes nothing; use the operator's token")),
    }
    request.extensions_mut().insert(role);
    if reads { Ok(request) } else { is_deliberate(request).await }
}

/// The name we are asked for, from the one place where it stands.
fn host(request: &Request) -> Result<Authority, Problem> {
    let missing = || Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", "say whom you ask: send one Host");
    let mut named = request.headers().get_all(header::HOST).iter();
    let (Some(value), None) = (named.next(), named.next()) else { return Err(missing()) };
    let host: Authority = value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(missing)?;
    let same = request.uri().authority().is_none_or(|target| *target == host);
    if same && !host.as_str().contains('@') { Ok(host) } else { Err(missing()) }
}

/// Refuses what another site's page makes a browser send. Following a link to the page is fine.
fn is_from_here(request: &Request, host: &Authority) -> Result<(), Problem> {
    let text = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let refused = || Err(Problem::forbidden("this came from another site's page"));
    let visits = request.method() == Method::GET
        && text("sec-fetch-mode") == Some("navigate")
        && !request.uri().path().starts_with("/api/");
    match text("sec-fetch-site") {
        None | Some("same-origin" | "none") => {}
        Some(_) if visits => {}
        Some(_) => return refused(),
    }
    match text("origin").map(|origin| origin.split_once("://")) {
        None => Ok(()),
        Some(Some(("http" | "https", from))) if from.eq_ignore_ascii_case(host.as_str()) => Ok(()),
        Some(_) => refused(),
    }
}

fn role(console: &Console, request: &Request) -> Result<Role, Problem> {
    let mut given = request.headers().get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else { return Ok(Role::Nobody) };
    let wrong = || Problem::unauthorized("that is not a token of this server");
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let token = token.filter(|_| given.next().is_none()).unwrap_or("");
    // Something else than a token counts as a wrong one.
    match console.access().judge(token, peer(request)) {
        Verdict::Known(role) => Ok(role),
        Verdict::Wrong => Err(wrong()),
        Verdict::TooMany => {
            Err(Problem::too_many("too many wrong tokens came from your address; wait ten seconds"))
        }
    }
}

/// Who is at the other end. Without a socket there is only one who asks.
fn peer(request: &Request) -> IpAddr {
    request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.0.ip())
}

fn too_fast(role: Role, wait: Duration) -> Problem {
    let detail = match role {
        Role::Nobody => "too many requests a second came from your address; ask less often, or send a token",
        _ => {
            "too many requests a second came with this token; ask less often, or start the server with a higher --max-rate"
        }
    };
    Problem::too_many(detail).retry_after(wait.as_secs() + 1)
}

/// What no form and no picture can send: a header of ours, and JSON. Reads the body, for whoever comes next.
async fn is_deliberate(request: Request) -> Result<Request, Problem> {
    let headers = request.headers();
    if headers.get("x-leasehold").is_none_or(|value| value != "1") {
        return Err(Problem::forbidden("what changes anything needs the header X-Leasehold: 1"));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(Problem::forbidden("what changes anything needs Content-Type: application/json"));
    }
    let (parts, body) = request.into_parts();
    let read = Limited::new(body, BODY).collect();
    let body = match tokio::time::timeout(PATIENCE, read).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "64 KiB is the limit"));
        }
        Ok(Err(_)) => return Err(Problem::config("the body ended too soon")),
        Err(_) => {
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body came too slowly"));
        }
    };
    Ok(Request::from_parts(parts, Body::from(body)))
}
