//! TLS: a server with a certificate of our own authority is trusted if that authority is named, and not otherwise.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{net::SocketAddr, path::Path, time::Duration};

use leasehold_core::{Client, ErrorKind};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::servers::{Recipe, Server, make_certificates, start_or_skip};

/// A Redis that speaks TLS only, with certificates made for it.
const SECURE: Recipe =
    Recipe { program: "redis-server", package: "redis-server", arguments: secure, answers: accepts };

fn secure(port: u16, folder: &Path) -> Vec<String> {
    make_certificates(folder).unwrap();
    let (port, file) = (port.to_string(), |name: &str| folder.join(name).to_string_lossy().into_owned());
    let options: [(&str, String); 9] = [
        ("--port", "0".to_owned()),
        ("--tls-port", port),
        ("--bind", "127.0.0.1".to_owned()),
        ("--tls-cert-file", file("server.pem")),
        ("--tls-key-file", file("server.key")),
        ("--tls-ca-cert-file", file("ca.pem")),
        ("--tls-auth-clients", "no".to_owned()),
        ("--save", String::new()),
        ("--dir", folder.to_string_lossy().into_owned()),
    ];
    options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
}

fn accepts(address: SocketAddr) -> bool {
    std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok()
}

#[tokio::test]
async fn only_a_named_authority_is_trusted() {
    let Some(server) = start_or_skip(|| Server::start(SECURE)) else { return };
    let url = format!("rediss://localhost:{}", server.port());
    let error = Redis::open(RedisConfig::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let trusted = format!("{url}?tls_ca={}", server.folder().join("ca.pem").display());
    let client = Client::new(Redis::open(RedisConfig::from_url(&trusted).unwrap()).await.unwrap());
    let guard = client.lock("x").acquire().await.unwrap();
    let waits = client.lock("x");
    let waiting = tokio::runtime::Handle::current().spawn(async move { waits.acquire().await.unwrap() });
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}
