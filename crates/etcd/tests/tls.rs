//! TLS: a server with a certificate of our own authority is trusted if that authority is named, and not otherwise.

mod common;

use common::{eventually, spawn};
use leasehold_core::{Client, ErrorKind, Result};
use leasehold_etcd::{Etcd, EtcdConfig};
use leasehold_testkit::servers::{etcd as servers, start_or_skip};

async fn open(url: &str) -> Result<Etcd> {
    Etcd::open(EtcdConfig::from_url(url)?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_named_authority_is_trusted() {
    let Some(server) = start_or_skip(servers::Etcd::start_secure) else { return };
    let url = format!("etcds://localhost:{}", server.port());
    let trusted = format!("{url}?tls_ca={}", server.folder().join("ca.pem").display());
    // It listens before it has elected itself.
    eventually(async || open(&trusted).await.is_ok()).await;
    let client = Client::new(open(&trusted).await.unwrap());
    let guard = client.lock("x").acquire().await.unwrap();
    let waits = client.lock("x");
    let waiting = spawn(async move { waits.acquire().await.unwrap() });
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
    for (distrusted, kind) in [
        (url.clone(), ErrorKind::Unavailable),
        (url.replace("etcds", "etcd"), ErrorKind::Unavailable),
        // Its certificate is for another name.
        (trusted.replace("localhost", "127.0.0.1"), ErrorKind::Unavailable),
        (trusted.replace("ca.pem", "none.pem"), ErrorKind::Config),
        (trusted.replace("etcds", "etcd"), ErrorKind::Config),
    ] {
        let error = open(&distrusted).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{distrusted}: {error}");
    }
}
