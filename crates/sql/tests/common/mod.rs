//! What the tests of this folder share: a store in a folder of its own, and claims made by hand.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    ClaimId, ClientId, ErrorKind, Key, Result, Who,
    backend::{
        Attempt, Backend, Busy, Claim, ClaimSpec, Grant, Life, Mode, RecordStore, Recorded, Release, Shape,
    },
};
use leasehold_sql::{Sqlite, SqliteConfig};
use tempfile::TempDir;

/// Longer than any test may take: what ends before has been ended by something else than its lease.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A folder with one database in it, removed at the end.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder().join("locks.db")
    }

    pub(crate) fn sessions(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder().join("locks.db-sessions")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn session_file(&self, session: &str) -> PathBuf {
        self.folder().join("locks.db-sessions").join(session)
    }

    pub(crate) async fn open(&self) -> Recorded<Sqlite> {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn try_open(&self) -> Result<Recorded<Sqlite>> {
        Sqlite::open(SqliteConfig::new(self.file())).await
    }

    /// The database as another program would see it.
    pub(crate) fn plain(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("", name).unwrap()
}

pub(crate) fn fresh_id() -> ClaimId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{}:{}", ClientId::random(), NEXT.fetch_add(1, Ordering::Relaxed)).parse().unwrap()
}

pub(crate) fn spec(name: &str, ttl: Duration) -> ClaimSpec {
    ClaimSpec {
        id: fresh_id(),
        key: key(name),
        mode: Mode::Exclusive,
        shape: Shape::default(),
        ttl,
        fair: false,
        life: Life::Session,
        who: Arc::new(Who::here()),
        label: None,
        location: None,
        fences: 1,
    }
}

pub(crate) fn claim<S: RecordStore>(store: &Recorded<S>, name: &str) -> Box<dyn Claim> {
    store.claim(Arc::new(spec(name, LONG)))
}

/// Tries once and must win.
pub(crate) async fn win(claim: &mut Box<dyn Claim>) -> Grant {
    match claim.attempt().await.unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("{busy}"),
    }
}

/// Tries once and must lose.
pub(crate) async fn lose(claim: &mut Box<dyn Claim>) -> Busy {
    match claim.attempt().await.unwrap() {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("{grant:?}"),
    }
}

/// Tries, arms the bell, tries again: from now on a release rings.
pub(crate) async fn stand_in_line(claim: &mut Box<dyn Claim>) {
    lose(claim).await;
    claim.changed().await.unwrap();
    lose(claim).await;
}

/// Acquires and releases once; what fence was it?
pub(crate) async fn pass(store: &Recorded<Sqlite>, name: &str) -> u64 {
    let mut claim = claim(store, name);
    let grant = win(&mut claim).await;
    assert_eq!(claim.release().await.unwrap(), Release::Released);
    grant.fence
}

/// How many names are left behind.
pub(crate) const LEFT: u32 = 200;

/// Leaves rows behind, one of somebody who died; the newest fence of the others.
pub(crate) async fn leave_rows<S: RecordStore>(store: &Recorded<S>) -> u64 {
    win(&mut claim(store, "dead")).await;
    let mut last = 0;
    for number in 0..LEFT {
        for _ in 0..2 {
            let mut claim = claim(store, &format!("left{number}"));
            last = win(&mut claim).await.fence;
            let _: Release = claim.release().await.unwrap();
        }
    }
    last
}

/// Releases what may be there, until the server has answered that: as an engine does.
pub(crate) async fn withdraw(claim: &mut Box<dyn Claim>) {
    for _ in 0..100 {
        match claim.release().await {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
        }
    }
    panic!("nobody answers");
}

/// Asks a server that has just gone until it is known to be: a request that was on its way may have taken effect or not,
/// and says so.
pub(crate) async fn gone<S: RecordStore>(store: &Recorded<S>) {
    for number in 0..100 {
        match claim(store, &format!("gone{number}")).attempt().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}"),
            Ok(_) => {}
        }
    }
    panic!("it is still there");
}

/// Tries until it wins, as one who waits does; it fails if that does not come within minutes.
pub(crate) async fn wins_eventually<S: RecordStore>(store: &Recorded<S>, name: &str) -> Grant {
    let mut claim = self::claim(store, name);
    for _ in 0..6000 {
        match claim.attempt().await {
            Ok(Attempt::Granted(grant)) => return grant,
            Ok(Attempt::Busy(_)) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is still held");
}
