//! What the unit tests of this module share: a store in a folder of its own, and claims made by hand.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    ClientId, Key, Who,
    backend::{Attempt, Backend, ClaimSpec, Grant, Life, Mode, Recorded, Release, Shape},
};
use tempfile::TempDir;

use super::{Sqlite, SqliteConfig};

/// Longer than any test may take.
pub(super) const LONG: Duration = Duration::from_secs(3600);

pub(super) async fn open(folder: &TempDir) -> Recorded<Sqlite> {
    Sqlite::open(SqliteConfig::new(folder.path().join("locks.db"))).await.unwrap()
}

pub(super) fn spec(name: &str, ttl: Duration) -> Arc<ClaimSpec> {
    Arc::new(ClaimSpec {
        id: format!("{}:1", ClientId::random()).parse().unwrap(),
        key: Key::new("", name).unwrap(),
        mode: Mode::Exclusive,
        shape: Shape::default(),
        ttl,
        fair: false,
        life: Life::Session,
        who: Arc::new(Who::here()),
        label: None,
        location: None,
        fences: 1,
    })
}

/// Tries once and must win.
pub(super) async fn win(store: &Recorded<Sqlite>, spec: &Arc<ClaimSpec>) -> Grant {
    match store.claim(spec.clone()).attempt().await.unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("{busy}"),
    }
}

pub(super) async fn release(store: &Recorded<Sqlite>, spec: &ClaimSpec) {
    assert_eq!(store.release(&spec.key, spec.id, spec.mode).await.unwrap(), Release::Released);
}

/// Acquires and releases once; what fence was it?
pub(super) async fn pass(store: &Recorded<Sqlite>, name: &str) -> u64 {
    let spec = spec(name, LONG);
    let grant = win(store, &spec).await;
    release(store, &spec).await;
    grant.fence
}
