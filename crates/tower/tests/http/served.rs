//! Under axum, over real sockets.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use axum::{Router, body::Body, routing::get};
use futures_util::stream;
use leasehold_tower::Held;
use tokio::{
    sync::{Barrier, Mutex, mpsc},
    task::JoinSet,
};

use crate::{
    service::{Store, break_all, by_path, memory, redis, serve, until, until_free, until_held},
    wire::Connection,
};

/// The same case on both stores.
macro_rules! on_both_stores {
    ($($case:ident),+ $(,)?) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() { super::$case(super::memory()).await; })+
        }
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let Some(store) = super::redis(stringify!($case)).await else { return };
                super::$case(store).await;
            })+
        }
    };
}

on_both_stores!(
    sixty_four_connections_on_one_key_serialise_exactly,
    distinct_keys_are_served_at_the_same_time,
    fences_grow_from_request_to_request,
    a_body_that_streams_keeps_the_lock_to_its_end,
    a_client_that_hangs_up_gives_the_lock_back,
    a_client_that_hangs_up_in_the_body_gives_the_lock_back,
    a_client_that_hangs_up_in_line_leaves_it,
    a_lock_lost_before_the_response_stops_the_handler,
    a_lock_lost_in_the_body_cuts_it_off,
    a_shutdown_tells_what_was_cut_off,
);

async fn sixty_four_connections_on_one_key_serialise_exactly(store: Store) {
    const CONNECTIONS: u64 = 64;
    const EACH: u64 = 5;
    let (counter, inside) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (total, within) = (counter.clone(), inside.clone());
    // Read, let everybody else run, write: whoever comes in between is lost.
    let handler = async move || {
        assert_eq!(within.fetch_add(1, Ordering::SeqCst), 0, "alone");
        let read = total.load(Ordering::SeqCst);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        total.store(read + 1, Ordering::SeqCst);
        within.fetch_sub(1, Ordering::SeqCst);
    };
    let app = Router::new().route("/count/{key}", get(handler)).layer(by_path(&store.client).wait("10m"));
    let (server, _serving) = serve(app).await;
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        connections.spawn(async move {
            let mut connection = Connection::open(server).await.unwrap();
            let mut fences = Vec::new();
            for _ in 0..EACH {
                let (head, body) = connection.get("/count/one").await.unwrap();
                assert_eq!((head.status, &*body), (200, ""));
                fences.push(head.get("leasehold-fence").unwrap().parse::<u64>().unwrap());
            }
            fences
        });
    }
    let fences: Vec<u64> = connections.join_all().await.into_iter().flatten().collect();
    assert_eq!(counter.load(Ordering::SeqCst), CONNECTIONS * EACH);
    assert_eq!(
        fences.iter().collect::<BTreeSet<_>>().len() as u64,
        CONNECTIONS * EACH,
        "each a fence of its own"
    );
}

async fn distinct_keys_are_served_at_the_same_time(store: Store) {
    let together = Arc::new(Barrier::new(8));
    // Nobody is answered before all are inside.
    let handler = async move || {
        together.wait().await;
    };
    let app = Router::new().route("/meet/{key}", get(handler)).layer(by_path(&store.client).wait("10m"));
    let (server, _serving) = serve(app).await;
    let mut connections = JoinSet::new();
    for key in 0..8 {
        connections.spawn(async move {
            let mut connection = Connection::open(server).await.unwrap();
            connection.get(&format!("/meet/{key}")).await.unwrap().0.status
        });
    }
    assert_eq!(connections.join_all().await, [200; 8]);
}

async fn fences_grow_from_request_to_request(store: Store) {
    let handler = async |held: Held| held.fence().to_string();
    let app = Router::new().route("/fence/{key}", get(handler)).layer(by_path(&store.client).wait("10m"));
    let (server, _serving) = serve(app).await;
    let mut last = 0;
    for _ in 0..10 {
        let mut connection = Connection::open(server).await.unwrap();
        let (head, body) = connection.get("/fence/one").await.unwrap();
        let fence: u64 = body.parse().unwrap();
        assert_eq!(head.get("leasehold-fence"), Some(&*body), "the handler's and the client's are one");
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
}

/// A route whose body is what is sent here; and that.
fn streaming(store: &Store) -> (Router, mpsc::Sender<&'static str>) {
    let (sender, receiver) = mpsc::channel::<&'static str>(1);
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let handler = async move || {
        let Some(receiver) = receiver.lock().await.take() else { return Body::empty() };
        Body::from_stream(stream::unfold(receiver, async |mut receiver| {
            Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
        }))
    };
    let layer = by_path(&store.client).ttl("2s");
    (Router::new().route("/stream/{key}", get(handler)).layer(layer), sender)
}

async fn a_body_that_streams_keeps_the_lock_to_its_end(store: Store) {
    let (app, sender) = streaming(&store);
    let (server, _serving) = serve(app).await;
    let mut connection = Connection::open(server).await.unwrap();
    let head = connection.head("/stream/one").await.unwrap();
    assert_eq!(head.status, 200);
    for part in ["a", "b"] {
        sender.send(part).await.unwrap();
        assert_eq!(connection.chunk().await.unwrap().unwrap(), part.as_bytes());
        let (head, _) = Connection::open(server).await.unwrap().get("/stream/one").await.unwrap();
        assert_eq!(head.status, 423, "the head is out, the body is not");
    }
    drop(sender);
    assert_eq!(connection.chunk().await.unwrap(), None);
    until_free(&store.client, "one").await;
}

/// A route that never answers; whether somebody was in it, and was dropped there.
fn endless(store: &Store) -> (Router, Arc<AtomicBool>) {
    struct Noticed(Arc<AtomicBool>);
    impl Drop for Noticed {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let noticed = dropped.clone();
    let handler = async move || {
        let _noticed = Noticed(noticed);
        std::future::pending::<()>().await;
    };
    let layer = by_path(&store.client).ttl("1s").wait("10m");
    (Router::new().route("/endless/{key}", get(handler)).layer(layer), dropped)
}

async fn a_client_that_hangs_up_gives_the_lock_back(store: Store) {
    let (app, dropped) = endless(&store);
    let (server, _serving) = serve(app).await;
    let mut connection = Connection::open(server).await.unwrap();
    connection.ask("/endless/one").await.unwrap();
    until_held(&store.client, "one").await;
    drop(connection);
    until_free(&store.client, "one").await;
    assert!(dropped.load(Ordering::SeqCst), "the handler was dropped before the lock was free");
}

async fn a_client_that_hangs_up_in_the_body_gives_the_lock_back(store: Store) {
    let (app, sender) = streaming(&store);
    let (server, _serving) = serve(app).await;
    let mut connection = Connection::open(server).await.unwrap();
    connection.head("/stream/one").await.unwrap();
    sender.send("a").await.unwrap();
    connection.chunk().await.unwrap().unwrap();
    drop(connection);
    // A server finds out by writing.
    until("the body is dropped", async || sender.send("b").await.is_err()).await;
    until_free(&store.client, "one").await;
}

async fn a_client_that_hangs_up_in_line_leaves_it(store: Store) {
    let (app, dropped) = endless(&store);
    let (server, _serving) = serve(app).await;
    let guard = store.client.lock("one").acquire().await.unwrap();
    let mut connection = Connection::open(server).await.unwrap();
    connection.ask("/endless/one").await.unwrap();
    until("it waits", async || store.client.stats().waiting == 1).await;
    drop(connection);
    until("nobody waits", async || store.client.stats().waiting == 0).await;
    guard.release().await.unwrap();
    until_free(&store.client, "one").await;
    assert!(!dropped.load(Ordering::SeqCst), "the handler was never called");
}

async fn a_lock_lost_before_the_response_stops_the_handler(store: Store) {
    let (app, dropped) = endless(&store);
    let (server, _serving) = serve(app).await;
    let mut connection = Connection::open(server).await.unwrap();
    let (answer, ()) = tokio::join!(connection.get("/endless/one"), async {
        until_held(&store.client, "one").await;
        break_all(&store.client, "one").await;
    });
    let (head, body) = answer.unwrap();
    assert_eq!((head.status, head.get("content-type")), (409, Some("application/problem+json")));
    assert!(body.contains(r#""kind":"lost""#), "{body}");
    assert_eq!(head.get("leasehold-fence"), None);
    assert!(dropped.load(Ordering::SeqCst));
}

async fn a_lock_lost_in_the_body_cuts_it_off(store: Store) {
    let (app, sender) = streaming(&store);
    let (server, _serving) = serve(app).await;
    let mut connection = Connection::open(server).await.unwrap();
    connection.head("/stream/one").await.unwrap();
    sender.send("a").await.unwrap();
    connection.chunk().await.unwrap().unwrap();
    break_all(&store.client, "one").await;
    let error = connection.chunk().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "it is cut off, not ended");
    sender.closed().await;
}

async fn a_shutdown_tells_what_was_cut_off(store: Store) {
    let (app, dropped) = endless(&store);
    let (server, _serving) = serve(app).await;
    let mut connection = Connection::open(server).await.unwrap();
    let (answer, farewell) = tokio::join!(connection.get("/endless/one"), async {
        until_held(&store.client, "one").await;
        store.client.shutdown("60s").await.unwrap()
    });
    assert_eq!(farewell.interrupted, ["one"]);
    assert!(farewell.unreleased.is_empty());
    assert_eq!(answer.unwrap().0.status, 503);
    assert!(dropped.load(Ordering::SeqCst));
    let (head, body) = connection.get("/endless/one").await.unwrap();
    assert_eq!((head.status, head.get("retry-after")), (503, Some("1")));
    assert!(body.contains(r#""kind":"closed""#), "{body}");
}
