//! A disk that is really full: a small file system of each test's own, which takes the right to mount one.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::{fs::File, io::Write as _, path::PathBuf, process::Command};

use common::{LONG, claim, key, lose, pass, spec, stand_in_line, win, wins_eventually};
use leasehold_core::{
    Error, ErrorKind,
    backend::{Attempt, Backend, CellWrite, Expect, Recorded, Release, Renew, Renewal},
};
use leasehold_sql::{Sqlite, SqliteConfig};
use leasehold_testkit::servers::{Missing, StartError};
use tempfile::TempDir;

/// The size of a disk, in megabytes.
const SIZE: u64 = 24;

/// A disk of its own, unmounted at the end.
struct Disk(TempDir);

impl Disk {
    /// A right that nobody can install: where it is not given, the test is skipped aloud.
    fn mount() -> Option<Self> {
        Missing::Skip.judge(Self::try_mount())
    }

    fn try_mount() -> Result<Self, StartError> {
        let folder = TempDir::new()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={SIZE}m"), "tmpfs"]).arg(folder.path());
        if mount.output().is_ok_and(|mounted| mounted.status.success()) {
            return Ok(Self(folder));
        }
        Err(StartError::NotInstalled {
            program: "a file system of our own (mounting one takes root)".to_owned(),
            package: "mount",
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    async fn open(&self) -> Recorded<Sqlite> {
        self.try_open().await.unwrap()
    }

    async fn try_open(&self) -> Result<Recorded<Sqlite>, Error> {
        Sqlite::open(SqliteConfig::new(self.file("locks.db"))).await
    }

    fn log(&self) -> u64 {
        self.file("locks.db-wal").metadata().unwrap().len()
    }

    /// Fills the disk until there is no room for another byte.
    fn fill(&self) {
        let mut filler = File::create(self.file("filler")).unwrap();
        for block in [vec![0; 65536], vec![0; 512]] {
            while filler.write_all(&block).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.file("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).output();
        assert!(unmounted.is_ok_and(|unmounted| unmounted.status.success()) || std::thread::panicking());
    }
}

/// Takes new names until there is no room for another, and says why it was refused.
async fn exhaust(store: &Recorded<Sqlite>, held: &mut Vec<String>) -> Error {
    for number in 0..50_000 {
        let name = format!("name {number}");
        match store.claim(spec(&name, LONG).into()).attempt().await {
            Ok(Attempt::Granted(_)) => held.push(name),
            Ok(Attempt::Busy(busy)) => panic!("{busy}"),
            Err(error) => return error,
        }
    }
    panic!("more names than fit on the disk");
}

/// Releases all that is held.
async fn release_all(store: &Recorded<Sqlite>) {
    let mut cursor = None;
    loop {
        let page = store.list("", cursor.as_deref(), 1000).await.unwrap();
        for lock in page.locks {
            let holder = &lock.holders[0];
            let released = store.release(&key(&lock.name), holder.id, holder.mode).await.unwrap();
            assert_eq!(released, Release::Released);
        }
        cursor = page.next;
        if cursor.is_none() {
            return;
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_all_works_again_once_there_is_room() {
    let Some(disk) = Disk::mount() else { return };
    let (store, other) = (disk.open().await, disk.open().await);
    let before = pass(&store, "x").await;
    for _ in 0..3 {
        disk.fill();
        let mut held = Vec::new();
        let error = exhaust(&store, &mut held).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("the disk is full"), "{error}");
        assert!(held.len() > 100, "only {} names fit", held.len());
        // With not a page to be had, what is held can still be given back, by anybody.
        release_all(&other).await;
        disk.free();
        let mut more = held.clone();
        more.extend((0..2000).map(|number| format!("more {number}")));
        for name in &more {
            pass(&store, name).await;
        }
    }
    assert!(pass(&store, "x").await > before);
    assert!(store.list("", None, 100).await.unwrap().locks.is_empty());
}

#[tokio::test]
async fn locks_in_use_go_on_while_the_disk_is_full() {
    let Some(disk) = Disk::mount() else { return };
    let (store, other) = (disk.open().await, disk.open().await);
    let mut held = claim(&store, "held");
    win(&mut held).await;
    let mut waits = claim(&other, "held");
    stand_in_line(&mut waits).await;
    pass(&store, "x").await;
    disk.fill();
    let size = disk.log();
    let renewed = spec("renewed", LONG);
    win(&mut store.claim(renewed.clone().into())).await;
    for _ in 0..3000 {
        pass(&store, "x").await;
        let renew = Renew { id: renewed.id, key: renewed.key.clone(), mode: renewed.mode, ttl: LONG };
        let renewals = other.renew(&[renew]).await;
        assert!(matches!(renewals[..], [Ok(Renewal::Renewed { .. })]), "{renewals:?}");
    }
    assert_eq!(held.release().await.unwrap(), Release::Released);
    win(&mut waits).await;
    assert_eq!(waits.release().await.unwrap(), Release::Released);
    // More was written than it has room for. It may fill the last page it has.
    assert!(disk.log() < size + 4096, "{} bytes after {size}", disk.log());
}

#[tokio::test]
async fn cells_are_written_while_the_disk_is_full() {
    let Some(disk) = Disk::mount() else { return };
    let store = disk.open().await;
    disk.fill();
    for number in 0..500 {
        let name = format!("cell {}", number % 10);
        let expect = match store.read_cell(&name).await.unwrap() {
            Some(cell) => Expect::Version(cell.version),
            None => Expect::Absent,
        };
        let written = store.write_cell(&name, expect, &[7; 100], None).await.unwrap();
        assert!(matches!(written, CellWrite::Written(_)), "{written:?}");
    }
}

#[tokio::test]
async fn the_log_stays_small_whoever_writes_to_it() {
    let Some(disk) = Disk::mount() else { return };
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(disk.open().await);
    }
    // Each writes too little to look after the log on its own account; together, more than the disk has room for.
    for number in 0..1500 {
        for store in &stores {
            pass(store, &format!("x{}", number % 10)).await;
        }
    }
    assert!(disk.log() < 16 << 20, "{} bytes", disk.log());
}

#[tokio::test]
async fn a_session_begun_on_a_full_disk_is_known_to_be_over() {
    let Some(disk) = Disk::mount() else { return };
    let (store, other) = (disk.open().await, disk.open().await);
    pass(&store, "x").await;
    disk.fill();
    let mut held = claim(&other, "x");
    win(&mut held).await;
    disk.free();
    pass(&other, "y").await;
    lose(&mut claim(&store, "x")).await;
    drop((held, other));
    // Not at once: a program that another test has just started has a copy of our descriptors until it runs.
    wins_eventually(&store, "x").await;
}

#[tokio::test]
async fn a_store_is_opened_while_the_disk_is_full() {
    let Some(disk) = Disk::mount() else { return };
    let before = pass(&disk.open().await, "x").await;
    disk.fill();
    assert!(pass(&disk.open().await, "x").await > before);
}
