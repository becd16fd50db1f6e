//! The layer by itself: what is answered when, and what handlers get.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Extension, Router,
    body::{Body, Bytes, HttpBody},
    http::{HeaderMap, Request, Response, StatusCode},
    routing::get,
};
use http_body::Frame;
use http_body_util::BodyExt;
use leasehold_core::{Client, ErrorKind, backend::Memory};
use leasehold_testkit::scripted::{Fault, Script, Scripted, Verb};
use leasehold_tower::{BusyStatus, FENCE, Held, LockLayer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::service::{by_path, memory};

fn request(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// What becomes of this request under this layer, whose inner service answers with the fence that the request brought.
async fn answer(layer: LockLayer, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
    let inner = service_fn(async |request: Request<Body>| {
        let brought = request.headers().get(FENCE).map(|fence| fence.to_str().unwrap().to_owned());
        Ok::<_, Infallible>(Response::new(Body::from(brought.unwrap_or_default())))
    });
    let response = layer.layer(inner).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_busy_answer_says_who_and_when_to_ask_again() {
    let store = memory();
    let _guard = store.client.lock("one").label("reprice").acquire().await.unwrap();
    let layer = by_path(&store.client).retry_after(Duration::from_millis(2500));
    let (status, headers, body) = answer(layer.clone(), request("/a/one")).await;
    assert_eq!((status, &headers["retry-after"]), (StatusCode::LOCKED, &"3".parse().unwrap()));
    assert_eq!(headers["content-type"], "application/problem+json");
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&problem["status"], &problem["kind"]), (&423.into(), &"busy".into()));
    let who = store.client.who();
    let holder = &problem["holders"][0];
    assert_eq!((&holder["host"], &holder["program"]), (&(*who.host).into(), &(*who.program).into()));
    assert_eq!(holder["label"], "reprice");
    assert!(holder["since"].as_str().unwrap().ends_with('Z'), "{holder}");
    assert!(holder["expires_in_ms"].as_u64().unwrap() > 0, "{holder}");
    let mut told: Vec<&String> = holder.as_object().unwrap().keys().collect();
    told.sort();
    assert_eq!(told, ["expires_in_ms", "host", "label", "program", "since"], "and no more");

    let layer = layer.busy_status(BusyStatus::Unavailable).hide_holders();
    let (status, headers, body) = answer(layer, request("/a/one")).await;
    assert_eq!((status, &headers["retry-after"]), (StatusCode::SERVICE_UNAVAILABLE, &"3".parse().unwrap()));
    assert!(!body.contains("reprice") && !body.contains("holders"), "{body}");
}

#[tokio::test]
async fn an_incoming_fence_is_taken_off_unless_it_is_trusted() {
    let store = memory();
    let forged = |path: &str| {
        let mut request = request(path);
        request.headers_mut().insert(FENCE, 999.into());
        request
    };
    let layer = by_path(&store.client).wait("1m");
    let (_, headers, body) = answer(layer.clone(), forged("/a/one")).await;
    assert_eq!((&headers[FENCE], &*body), (&"1".parse().unwrap(), ""));
    let (_, headers, body) = answer(layer.clone(), forged("/")).await;
    assert_eq!((headers.get(FENCE), &*body), (None, ""), "also where no lock is held");
    let (_, headers, body) = answer(layer.trust_incoming_fence(), forged("/a/one")).await;
    assert_eq!((&headers[FENCE], &*body), (&"2".parse().unwrap(), "999"), "ours is ours all the same");
}

#[tokio::test]
async fn a_store_that_is_down_is_503_and_says_no_more() {
    let script = Script::new();
    script.always(Verb::Attempt, Fault::Err(ErrorKind::Unavailable));
    let client = Client::new(Scripted::new(Memory::new(), script));
    let (status, headers, body) = answer(by_path(&client), request("/a/one")).await;
    assert_eq!((status, &headers["retry-after"]), (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap()));
    assert!(body.contains(r#""kind":"unavailable""#) && !body.contains("script"), "{body}");
}

#[tokio::test]
async fn a_key_that_is_refused_is_400_and_a_wrong_setting_is_500() {
    let client = memory().client;
    let layer = LockLayer::checked(&client, |_| Err::<Option<String>, _>("name an order"));
    let (status, _, body) = answer(layer, request("/")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains(r#""detail":"name an order""#), "{body}");
    let (status, ..) = answer(LockLayer::new(&client, |_| Some("x".repeat(10_000))), request("/")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "no lock has such a name");
    let (status, ..) = answer(by_path(&client).wait("a while"), request("/a/one")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn the_lease_and_its_end_are_those_of_the_layer() {
    let client = memory().client;
    let handler = async |held: Held| held.remaining().as_millis().to_string();
    let asked = async |layer: LockLayer| -> u64 {
        let app = Router::new().route("/a/{key}", get(handler)).layer(layer);
        let body = app.oneshot(request("/a/one")).await.unwrap().into_body();
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap().parse().unwrap()
    };
    let layer = by_path(&client).wait("1m");
    let (minute, day) = (60_000, 24 * 3_600_000);
    assert!(asked(layer.clone()).await < minute, "half a minute unless said");
    assert!(asked(layer.clone().ttl("1day")).await > day / 2);
    assert!(asked(layer.ttl("1day").max_hold("5s")).await <= 5_000, "held no longer than that");
}

#[tokio::test]
async fn readers_share_what_lock_with_makes() {
    let client = memory().client;
    let layer = by_path(&client).lock_with(|client, name, request| {
        let lock = client.rwlock(name);
        if request.method.is_safe() { lock.read() } else { lock.write() }
    });
    let _reader = client.rwlock("one").read().acquire().await.unwrap();
    assert_eq!(answer(layer.clone(), request("/a/one")).await.0, StatusCode::OK);
    let write = Request::post("/a/one").body(Body::empty()).unwrap();
    assert_eq!(answer(layer, write).await.0, StatusCode::LOCKED);
}

#[tokio::test]
async fn a_handler_that_wants_the_lock_never_runs_without_it() {
    let client = memory().client;
    let app = Router::new()
        .route("/", get(async |_: Held| "ran"))
        .route("/maybe", get(async |held: Option<Held>| held.is_some().to_string()))
        .route("/maybe/{key}", get(async |held: Option<Held>| held.is_some().to_string()))
        .layer(by_path(&client));
    let asked = async |path: &str| {
        let response = app.clone().oneshot(request(path)).await.unwrap();
        (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
    };
    let (status, body) = asked("/").await;
    assert_eq!(status, 500, "{body:?}");
    assert_eq!(asked("/maybe").await, (200, "false".into()));
    assert_eq!(asked("/maybe/one").await, (200, "true".into()));
}

#[tokio::test]
async fn what_a_handler_left_behind_is_told_when_the_response_is_over() {
    let client = memory().client;
    let left = Arc::new(Mutex::new(None));
    let kept = left.clone();
    let handler = async move |Extension(held): Extension<Held>| {
        held.check().unwrap();
        *kept.lock().unwrap() = Some(held);
    };
    let app = Router::new().route("/a/{key}", get(handler)).layer(by_path(&client));
    let response = app.oneshot(request("/a/one")).await.unwrap();
    let held = left.lock().unwrap().take().unwrap();
    assert_eq!((held.name(), held.fence()), ("one", 1));
    held.check().unwrap();
    assert!(held.remaining() > Duration::ZERO);
    let (error, ()) = tokio::join!(held.lost(), async { drop(response) });
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert_eq!(held.check().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((held.remaining(), held.lost().await.kind()), (Duration::ZERO, ErrorKind::Lost));
    client.idle().await;
    assert!(client.lock("one").try_acquire().await.unwrap().is_some(), "looking does not hold it");
}

#[tokio::test]
async fn a_body_is_dropped_under_the_lock() {
    /// An empty body that looks at the lock once more when it is dropped.
    struct Last(Held, Arc<Mutex<Option<bool>>>);
    impl HttpBody for Last {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(None)
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = Some(self.0.check().is_ok());
        }
    }
    let (client, seen) = (memory().client, Arc::new(Mutex::new(None)));
    let noted = seen.clone();
    let handler = async move |held: Held| Body::new(Last(held, noted));
    let app = Router::new().route("/a/{key}", get(handler)).layer(by_path(&client));
    let mut body = app.oneshot(request("/a/one")).await.unwrap().into_body();
    assert!(body.frame().await.is_none());
    assert!(client.lock("one").try_acquire().await.unwrap().is_none(), "not even after its last frame");
    drop(body);
    assert_eq!(*seen.lock().unwrap(), Some(true), "whatever it still did");
    client.idle().await;
    assert!(client.lock("one").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn operators_see_the_line_that_made_the_layer() {
    let client = memory().client;
    let (layer, line) = (LockLayer::new(&client, |_| Some("one".to_owned())), line!());
    let inner = service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let response = layer.layer(inner).oneshot(request("/")).await.unwrap();
    let state = client.inspect("one").await.unwrap().unwrap();
    let location = state.holders[0].location.as_ref().unwrap().to_string();
    assert!(location.ends_with(&format!("tests/http/layer.rs:{line}")), "{location}");
    drop(response);
}

#[tokio::test]
async fn locks_that_are_had_on_the_spot_let_others_run() {
    let (client, ran) = (memory().client, Arc::new(AtomicBool::new(false)));
    let mut other = tokio::task::JoinSet::new();
    other.spawn({
        let ran = ran.clone();
        async move { ran.store(true, Ordering::SeqCst) }
    });
    let layer = by_path(&client);
    for _ in 0..10_000 {
        assert_eq!(answer(layer.clone(), request("/a/one")).await.0, StatusCode::OK);
    }
    assert!(ran.load(Ordering::SeqCst), "a task that is always served at once keeps the thread to itself");
    other.join_all().await;
}

/// Sets something aside when it says that it is ready, as a limit on requests does.
struct Limited {
    seats: Arc<Semaphore>,
    seat: Option<OwnedSemaphorePermit>,
}

impl Clone for Limited {
    fn clone(&self) -> Self {
        Self { seats: self.seats.clone(), seat: None }
    }
}

impl Service<Request<Body>> for Limited {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.seat = self.seats.clone().try_acquire_owned().ok();
        if self.seat.is_some() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        self.seat = None;
        std::future::ready(Ok(Response::new(Body::empty())))
    }
}

#[tokio::test]
async fn a_refused_request_keeps_nothing_of_the_inner_service() {
    let (client, seats) = (memory().client, Arc::new(Semaphore::new(1)));
    let layer = LockLayer::checked(&client, |_| Err::<Option<String>, _>("name an order"));
    let mut service = layer.layer(Limited { seats: seats.clone(), seat: None });
    let refused = service.ready().await.unwrap().call(request("/")).await.unwrap();
    assert_eq!((refused.status(), seats.available_permits()), (StatusCode::BAD_REQUEST, 1));
}
