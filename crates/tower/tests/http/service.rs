//! What tests are about: clients of stores, a service under the layer, and waiting for what must come.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, http::request::Parts};
use leasehold_core::{Client, backend::Memory};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{Shared, redis as servers};
use leasehold_tower::LockLayer;
use tokio::{net::TcpListener, task::JoinSet};

/// A store, and what must live for as long as it is used.
pub(crate) struct Store {
    pub(crate) client: Client,
    _server: Option<Arc<servers::Redis>>,
}

pub(crate) fn memory() -> Store {
    Store { client: Client::new(Memory::new()), _server: None }
}

/// Isolated by the prefix, since all tests share one server; `None`, counted aloud, if it may be missing and is.
pub(crate) async fn redis(test: &str) -> Option<Store> {
    static SERVER: Shared<servers::Redis> = Shared::new();
    let server = SERVER.get_or_skip(servers::Redis::start)?;
    let config = RedisConfig::from_url(&server.url()).unwrap();
    let backend = Redis::open(config).await.unwrap();
    let client = Client::builder(backend).prefix(&format!("{test}:")).build();
    Some(Store { client, _server: Some(server) })
}

/// A lock by the second part of the path: `/anything/KEY`.
pub(crate) fn by_path(client: &Client) -> LockLayer {
    LockLayer::new(client, |request: &Parts| request.uri.path().split('/').nth(2).map(str::to_owned))
}

/// A server on a free port, for as long as the set lives.
pub(crate) async fn serve(app: Router) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, serving)
}

/// Waits until this is so. A test that hangs would say less.
pub(crate) async fn until(what: &str, so: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be: {what}");
}

pub(crate) async fn until_free(client: &Client, name: &str) {
    until("the lock is free", async || {
        client.inspect(name).await.unwrap().is_none_or(|lock| lock.holders.is_empty())
    })
    .await;
}

pub(crate) async fn until_held(client: &Client, name: &str) {
    until("the lock is held", async || {
        client.inspect(name).await.unwrap().is_some_and(|lock| !lock.holders.is_empty())
    })
    .await;
}

/// An operator breaks whatever holds this name.
pub(crate) async fn break_all(client: &Client, name: &str) {
    let state = client.inspect(name).await.unwrap().unwrap();
    for holder in state.holders {
        let _ = client.break_hold(name, holder.id, "a test").await.unwrap();
    }
}
