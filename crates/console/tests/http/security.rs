//! Who is kept out: a test for each threat that the server has an answer to.

use leasehold_console::{Access, Limits};
use rustix::process::{Resource, Rlimit};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::client::{Answer, LIMIT, OPERATOR, ROUTES, Served, VIEWER};

const JSON: &str = "Content-Type: application/json";
const OURS: &str = "X-Leasehold: 1";

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn mutations() -> impl Iterator<Item = &'static str> {
    ROUTES.into_iter().filter(|(method, _)| *method == "POST").map(|(_, path)| path)
}

#[tokio::test]
async fn nothing_is_changed_without_the_operators_token() {
    let served = Served::start().await;
    for path in mutations() {
        for (token, status) in [(None, 401), (Some("a-token-of-nobody"), 401), (Some(VIEWER), 403)] {
            let token = token.map(bearer);
            let headers: Vec<&str> = token.as_deref().into_iter().chain([OURS, JSON]).collect();
            let answer = served.ask("POST", path, &headers, "{}").await;
            assert_eq!((answer.status, path), (status, path), "{token:?}");
            assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
        }
    }
    assert!(served.client.list("", None, 10).await.unwrap().locks.is_empty(), "nobody acquired anything");
}

#[tokio::test]
async fn an_open_server_still_wants_a_token_for_changes() {
    let (access, token) = Access::open();
    let served = Served::with(access, |builder| builder).await;
    assert_eq!(served.ask("GET", "/api/v1/locks", &[], "").await.status, 200);
    assert_eq!(served.ask("GET", "/metrics", &[], "").await.status, 200);
    assert_eq!(served.ask("GET", "/api/v1/locks", &[&bearer("wrong-wrong-wrong")], "").await.status, 401);
    for path in mutations() {
        assert_eq!(served.ask("POST", path, &[OURS, JSON], "{}").await.status, 401);
    }
    let done = served.ask("POST", "/api/v1/locks/x/acquire", &[&bearer(&token), OURS, JSON], "{}").await;
    assert_eq!(done.status, 200);
}

#[tokio::test]
async fn with_tokens_nothing_is_seen_without_one() {
    let served = Served::start().await;
    let open = ["/", "/index.html", "/nothing/here", "/healthz", "/readyz", "/api/v1/session"];
    for (method, path) in ROUTES.into_iter().filter(|(method, _)| *method == "GET") {
        let status = served.ask(method, path, &[], "").await.status;
        assert_eq!(status == 401, !open.contains(&path), "{path} {status}");
        assert_ne!(served.ask(method, path, &[&bearer(VIEWER)], "").await.status, 401, "{path}");
    }
    let session = served.ask("GET", "/api/v1/session", &[], "").await.json();
    assert_eq!((&session["role"], &session["store"]), (&"none".into(), &serde_json::Value::Null));
    assert_eq!(served.ask("GET", "/api/v1/session", &[&bearer(VIEWER)], "").await.json()["role"], "viewer");
}

#[tokio::test]
async fn a_token_counts_nowhere_but_in_its_header() {
    let served = Served::start().await;
    for (path, header) in [
        (format!("/api/v1/locks?token={OPERATOR}"), "Accept: */*".to_owned()),
        (format!("/api/v1/locks?access_token={OPERATOR}"), "Accept: */*".to_owned()),
        ("/api/v1/locks".to_owned(), format!("Cookie: token={OPERATOR}")),
        ("/api/v1/locks".to_owned(), format!("Authorization: Basic {OPERATOR}")),
        ("/api/v1/locks".to_owned(), format!("Authorization: {OPERATOR}")),
    ] {
        assert_eq!(served.ask("GET", &path, &[&header], "").await.status, 401, "{path} {header}");
    }
    let two = [bearer(OPERATOR), bearer(VIEWER)];
    assert_eq!(served.ask("GET", "/api/v1/locks", &[&two[0], &two[1]], "").await.status, 401, "two are none");
}

#[tokio::test]
async fn whoever_guesses_tokens_is_refused_for_a_while() {
    let served = Served::start().await;
    let mut seen = Vec::new();
    for guess in 0..40 {
        let answer =
            served.ask("GET", "/api/v1/locks", &[&bearer(&format!("guess-number-{guess:04}"))], "").await;
        seen.push(answer.status);
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some());
        }
    }
    assert!(seen.iter().all(|status| matches!(status, 401 | 429)), "{seen:?}");
    assert!(seen.contains(&429), "{seen:?}");
    assert_eq!(served.ask("GET", "/healthz", &[], "").await.status, 200, "what needs no token still answers");
    let taken = served.post("/api/v1/locks/deploy/acquire", r#"{"ttl":"60s"}"#).await;
    assert_eq!(taken.status, 200, "a right token of the same address works on: {taken:?}");
    let ticket = json!({ "ticket": taken.json()["ticket"] }).to_string();
    assert_eq!(served.post("/api/v1/locks/deploy/renew", &ticket).await.status, 200);
}

#[tokio::test]
async fn what_a_form_or_a_picture_can_send_changes_nothing() {
    let served = Served::start().await;
    let token = bearer(OPERATOR);
    let refused: [&[&str]; 6] = [
        &[&token, "Content-Type: application/x-www-form-urlencoded", OURS],
        &[&token, "Content-Type: multipart/form-data; boundary=x", OURS],
        &[&token, "Content-Type: text/plain", OURS],
        &[&token, OURS],
        &[&token, JSON],
        &[&token, JSON, "X-Leasehold: 2"],
    ];
    for headers in refused {
        for path in mutations() {
            assert_eq!(served.ask("POST", path, headers, "{}").await.status, 403, "{path} {headers:?}");
        }
    }
    let preflight = ["Origin: http://evil.test", "Access-Control-Request-Method: POST"];
    for path in mutations() {
        let answer = served.ask("OPTIONS", path, &preflight, "").await;
        assert!(matches!(answer.status, 403 | 405), "{}", answer.status);
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
        assert_eq!(served.get(path).await.status, 405, "a GET changes nothing");
    }
}

#[tokio::test]
async fn what_comes_from_another_sites_page_is_refused() {
    let served = Served::start().await;
    let (token, ours) = (bearer(OPERATOR), format!("Origin: http://{}", served.address));
    let foreign: [&[&str]; 6] = [
        &["Origin: http://evil.test"],
        &["Origin: null"],
        &["Origin: http://127.0.0.1:1"],
        &["Sec-Fetch-Site: cross-site"],
        &["Sec-Fetch-Site: same-site"],
        &[&ours, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"],
    ];
    for (method, path) in ROUTES.into_iter().filter(|(_, path)| path.starts_with("/api/")) {
        for headers in foreign {
            let headers: Vec<&str> = headers.iter().copied().chain([&*token, JSON, OURS]).collect();
            assert_eq!(served.ask(method, path, &headers, "{}").await.status, 403, "{path} {headers:?}");
        }
    }
    for own in [&["Sec-Fetch-Site: same-origin", &ours][..], &["Sec-Fetch-Site: none"], &[&ours]] {
        let headers: Vec<&str> = own.iter().copied().chain([&*token, JSON, OURS]).collect();
        assert_eq!(
            served
                .ask("POST", "/api/v1/locks/x/acquire", &headers, "{\"ttl\":\"1s\",\"wait\":\"30s\"}")
                .await
                .status,
            200,
            "{own:?}"
        );
    }
    let link = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"];
    assert_eq!(served.ask("GET", "/", &link, "").await.status, 200, "following a link to the page is fine");
    assert_eq!(
        served.ask("GET", "/", &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"], "").await.status,
        403
    );
}

#[tokio::test]
async fn a_foreign_host_is_refused_on_every_route() {
    let served = Served::with(Access::with_tokens(Some(OPERATOR), None).unwrap(), |builder| {
        builder.host("Locks.example.com")
    })
    .await;
    let token = bearer(OPERATOR);
    for (method, path) in ROUTES.into_iter().chain([("GET", "/api/v1/events")]) {
        for host in [
            "Host: evil.test",
            "Host: evil.test:7878",
            "Host: 127.0.0.1.evil.test",
            "Host: localhost.evil.test",
            "Host: user@localhost",
            "Host:",
        ] {
            let answer = served.ask(method, path, &[host, &token, JSON, OURS], "{}").await;
            assert!(matches!(answer.status, 400 | 421), "{path} {host} {}", answer.status);
            assert!(answer.status == 421 || host == "Host:", "{path} {host}");
        }
    }
    for host in [
        "Host: localhost",
        "Host: LOCALHOST:9",
        "Host: 127.0.0.1",
        "Host: [::1]:7878",
        "Host: locks.example.com",
    ] {
        assert_eq!(served.ask("GET", "/", &[host], "").await.status, 200, "{host}");
    }
    let two = served.ask("GET", "/", &["Host: localhost", "Host: evil.test"], "").await;
    assert!(matches!(two.status, 400 | 421), "{}", two.status);
    let elsewhere = served.ask("GET", "http://evil.test/", &["Host: localhost"], "").await;
    assert_eq!(elsewhere.status, 421);
}

#[tokio::test]
async fn every_answer_carries_the_headers_that_protect_it() {
    let served = Served::start().await;
    let good = |answer: &Answer, path: &str| {
        let policy =
            answer.header("content-security-policy").unwrap_or_else(|| panic!("{path}: {}", answer.head));
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{path} {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "deny"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        let cached = answer.header("cache-control").unwrap();
        let file = matches!(path, "/" | "/index.html") && answer.status == 200;
        assert_eq!(cached, if file { "no-cache" } else { "no-store" }, "{path}");
        assert!(!answer.head.contains("set-cookie") && !answer.head.contains("access-control"), "{path}");
    };
    for (method, path) in ROUTES {
        let headers = [&*bearer(OPERATOR), JSON, OURS];
        good(&served.ask(method, path, &headers, "{}").await, path);
        good(&served.ask(method, path, &["Host: evil.test"], "").await, path);
        good(&served.ask(method, path, &["Origin: http://evil.test"], "").await, path);
        good(&served.ask("DELETE", path, &headers, "").await, path);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_unread() {
    let served = Served::start().await;
    let body = format!("{{\"label\":\"{}\"}}", "x".repeat(70_000));
    assert_eq!(served.post("/api/v1/locks/x/acquire", &body).await.status, 413);
    for nonsense in
        ["", "[]", "{", "{\"wait\":\"soon\"}", "{\"unknown\":1}", "{\"ttl\":-1}", "{\"wait\":\"2h\"}"]
    {
        assert_eq!(served.post("/api/v1/locks/x/acquire", nonsense).await.status, 400, "{nonsense:?}");
    }
    assert!(served.client.list("", None, 10).await.unwrap().locks.is_empty());
}

#[tokio::test]
async fn connections_that_say_nothing_are_closed_and_never_keep_others_out_for_long() {
    let mut limits = Limits::default();
    (limits.connections, limits.patience) = (8, std::time::Duration::from_millis(200));
    let served = Served::limited(Access::open().0, |builder| builder, limits).await;
    let mut silent = Vec::new();
    for at in 0..40 {
        let mut socket = TcpStream::connect(served.address).await.unwrap();
        if at % 2 == 0 {
            // A server that has closed already is right too.
            drop(socket.write_all(b"GET / HTTP/1.1\r\nHost: loc").await);
        }
        silent.push(socket);
    }
    assert_eq!(served.ask("GET", "/healthz", &[], "").await.status, 200);
    for mut socket in silent {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(LIMIT, socket.read_to_end(&mut rest)).await;
        drop(closed.expect("a silent connection is closed"));
    }
}

#[tokio::test]
async fn a_thousand_who_never_end_their_request_keep_nobody_out() {
    let mut limits = Limits::default();
    limits.patience = 60 * LIMIT;
    let served = Served::limited(Access::open().0, |builder| builder, limits).await;
    let slow = half_sent(&served, 1000).await;
    assert_eq!(served.ask("GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(served.ask("GET", "/api/v1/locks", &[], "").await.status, 200);
    for socket in &slow {
        let read = socket.try_read(&mut [0]);
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody was closed for it");
    }
}

#[tokio::test]
async fn a_thousand_who_never_end_their_request_are_closed() {
    let mut limits = Limits::default();
    limits.patience = std::time::Duration::from_millis(200);
    let served = Served::limited(Access::open().0, |builder| builder, limits).await;
    for mut socket in half_sent(&served, 1000).await {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(LIMIT, socket.read_to_end(&mut rest)).await;
        drop(closed.expect("a slow connection is closed"));
    }
    assert_eq!(served.ask("GET", "/healthz", &[], "").await.status, 200);
}

/// Connections on which the first half of a request came.
async fn half_sent(served: &Served, count: usize) -> Vec<TcpStream> {
    // Both ends are in this process, and another test may do the same at the same time.
    let (files, most) = (4 * count as u64 + 1000, rustix::process::getrlimit(Resource::Nofile));
    if most.current.is_some_and(|current| current < files) {
        let raised = Rlimit { current: Some(files), ..most };
        rustix::process::setrlimit(Resource::Nofile, raised).expect("so many sockets may be open");
    }
    let mut slow = Vec::new();
    for _ in 0..count {
        let mut socket = TcpStream::connect(served.address).await.unwrap();
        // A server that has closed already is right too.
        drop(socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await);
        slow.push(socket);
    }
    slow
}

#[tokio::test]
async fn whoever_asks_too_often_is_told_to_wait_and_nobody_else_is() {
    let access = Access::with_tokens(Some(OPERATOR), Some(VIEWER)).unwrap();
    let served = Served::with(access, |builder| builder.max_rate(1.try_into().unwrap())).await;
    let (operator, viewer) = (bearer(OPERATOR), bearer(VIEWER));
    // All at once: to spread them so that each is in time would take a minute.
    let headers = [operator.as_str()];
    let asked = (0..60).map(|_| served.ask("GET", "/api/v1/session", &headers, ""));
    let answers = futures_util::future::join_all(asked).await;
    assert!(answers.iter().any(|answer| answer.status == 200));
    let refused = answers.iter().find(|answer| answer.status == 429).expect("somebody is too fast");
    assert_eq!(refused.json()["kind"], "too_many");
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(served.ask("GET", "/api/v1/session", &[&viewer], "").await.status, 200, "another token");
    assert_eq!(served.ask("GET", "/", &[], "").await.status, 200, "and who has none");
    for _ in 0..60 {
        assert_eq!(served.ask("GET", "/readyz", &[], "").await.status, 200, "probes are not counted");
        let renewed = served.ask("POST", "/api/v1/locks/a/renew", &[&operator, OURS, JSON], "{}").await;
        assert_ne!(renewed.status, 429, "nor are those who keep what they have");
    }
}

#[tokio::test]
async fn no_answer_repeats_a_token() {
    let served = Served::start().await;
    for (method, path) in ROUTES {
        for token in [OPERATOR, VIEWER, "a-secret-that-is-wrong"] {
            let answer = served
                .ask(method, path, &[&bearer(token), JSON, OURS], &format!("{{\"id\":\"{token}\"}}"))
                .await;
            let echoed = answer.body.contains(token) && !answer.body.contains("is not an id");
            assert!(!echoed && !answer.head.contains(token), "{path} {answer:?}");
        }
    }
}
