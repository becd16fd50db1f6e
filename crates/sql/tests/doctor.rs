//! What doctor finds about a file.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use common::{Place, pass};
use leasehold_core::{
    Client,
    backend::{Backend, Finding, Severity},
};

async fn found(client: &Client, topic: &str) -> Finding {
    let findings = client.diagnose().await.unwrap();
    findings.into_iter().find(|finding| finding.topic == topic).unwrap()
}

#[tokio::test]
async fn a_file_of_ones_own_gives_nothing_worse_than_a_note() {
    let place = Place::new();
    let store = place.open().await;
    pass(&store, "x").await;
    let findings = store.diagnose("").await.unwrap();
    assert!(findings.iter().all(|finding| finding.severity <= Severity::Note), "{findings:#?}");
    for topic in ["journal", "integrity"] {
        let finding = findings.iter().find(|finding| finding.topic == topic).unwrap();
        assert_eq!(finding.severity, Severity::Good, "{finding:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn rights_of_others_are_told() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let place = Place::new();
    let client = Client::new(place.open().await);
    for (mode, expected) in [(0o600, Severity::Good), (0o640, Severity::Note), (0o660, Severity::Warning)] {
        fs::set_permissions(place.file(), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(found(&client, "file-rights").await.severity, expected, "{mode:o}");
    }
}

#[tokio::test]
async fn damage_is_told() {
    let place = Place::new();
    {
        let plain = place.plain();
        let many = "CREATE TABLE orders (id INTEGER, note TEXT);
            WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
            INSERT INTO orders SELECT n, hex(randomblob(100)) FROM numbers;";
        plain.execute_batch(many).unwrap();
    }
    let client = Client::new(place.open().await);
    assert_eq!(found(&client, "integrity").await.severity, Severity::Good);
    client.shutdown("5s").await.unwrap();
    // A page amid the orders, far from those the store itself needs to open and from the free ones at the end.
    let mut bytes = std::fs::read(place.file()).unwrap();
    let amid = bytes.len() / 5 / 4096 * 4096;
    bytes[amid..amid + 4096].fill(0xff);
    std::fs::write(place.file(), bytes).unwrap();
    let client = Client::new(place.open().await);
    assert_eq!(found(&client, "integrity").await.severity, Severity::Danger);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_replaced_is_an_error() {
    let place = Place::new();
    let client = Client::new(place.open().await);
    std::fs::rename(place.file(), place.folder().join("moved.db")).unwrap();
    let error = client.diagnose().await.unwrap_err();
    assert!(error.to_string().contains("moved or replaced"), "{error}");
}
