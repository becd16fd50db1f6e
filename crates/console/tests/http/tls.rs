//! The console over TLS: with the right certificate it answers, and to plain text it says nothing.

use std::sync::Arc;

use leasehold::{Client, backend::Memory};
use leasehold_console::{Access, Console, Server, Tls};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::client::LIMIT;

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn over_tls_the_console_answers_and_plain_text_is_not_heard() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (chain, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::load(&chain, &key).unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap().tls(tls);
    let (address, client) = (server.address().unwrap(), Client::new(Memory::new()));
    let console = Console::builder(client.clone(), Access::open().0).build();
    client.runtime().spawn(server.run(console, std::future::pending()));

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let mut socket = connector.connect(name, TcpStream::connect(address).await.unwrap()).await.unwrap();
    socket.write_all(REQUEST).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(LIMIT, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");

    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(REQUEST).await.unwrap();
    let mut answer = Vec::new();
    // It may be closed hard: what counts is that no answer came.
    drop(tokio::time::timeout(LIMIT, plain.read_to_end(&mut answer)).await.expect("it is closed"));
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP"));
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, "-----BEGIN CERTIFICATE-----\nSECRET\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::write(&key, "SECRET").unwrap();
    let refused = Tls::load(&chain, &key).unwrap_err();
    assert!(refused.contains(".pem") && !refused.contains("SECRET"), "{refused}");
    assert!(Tls::load(&folder.path().join("none"), &key).unwrap_err().contains("none"));
}
