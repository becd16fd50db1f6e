//! A new boot: what was held is free, fences leap, and what no lease ends is still there.
//!
//! A boot is simulated by writing another boot's id into the file, as an earlier boot of the machine would have.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{LONG, Place, claim, key, lose, pass, spec, win};
use leasehold_core::{
    ErrorKind,
    backend::{Backend, CellWrite, Expect, LatchStep},
};

fn reboot(place: &Place) {
    let plain = place.plain();
    let changed =
        plain.execute("UPDATE leasehold_meta SET value = 'another boot' WHERE key = 'boot'", []).unwrap();
    assert_eq!(changed, 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn whatever_was_held_is_free_and_every_fence_leaps() {
    let place = Place::new();
    let store = place.open().await;
    let released = pass(&store, "released").await;
    let mut holder = claim(&store, "held");
    let held = win(&mut holder).await;
    drop((holder, store));
    // The row is as the dead left it: nobody has buried them, and the lease runs on.
    reboot(&place);
    let store = place.open().await;
    for (name, before) in [("held", held.fence), ("released", released), ("new", 0)] {
        let after = pass(&store, name).await;
        assert!(after > before + (1 << 32), "{name}: {after} after {before}");
        assert!(after < before + (1 << 33), "{name}: {after} after {before}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_leap_happens_once_per_boot() {
    let place = Place::new();
    place.open().await;
    reboot(&place);
    let first = pass(&place.open().await, "x").await;
    let second = pass(&place.open().await, "x").await;
    assert_eq!(second, first + 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn fences_that_the_machine_forgot_are_not_given_out_again() {
    let place = Place::new();
    let store = place.open().await;
    pass(&store, "x").await;
    // What is on the disk when the power fails, some commits behind.
    let files = ["locks.db", "locks.db-wal"].map(|name| place.folder().join(name));
    let kept = files.clone().map(|file| std::fs::read(file).unwrap());
    let mut forgotten = 0;
    for _ in 0..10 {
        forgotten = pass(&store, "x").await;
    }
    drop(store);
    std::fs::remove_file(place.folder().join("locks.db-shm")).unwrap();
    for (file, content) in files.iter().zip(kept) {
        std::fs::write(file, content).unwrap();
    }
    reboot(&place);
    let after = pass(&place.open().await, "x").await;
    assert!(after > forgotten, "{after} after {forgotten}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_in_use_under_another_boot_id_is_refused_and_what_is_held_stays_held() {
    let place = Place::new();
    let container = place.open().await;
    win(&mut claim(&container, "x")).await;
    reboot(&place);
    let error = place.try_open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("another boot id"), "{error}");
    lose(&mut claim(&container, "x")).await;
}

#[tokio::test]
async fn reopening_in_the_same_boot_changes_nothing() {
    let place = Place::new();
    let store = place.open().await;
    win(&mut claim(&store, "x")).await;
    let other = place.open().await;
    lose(&mut claim(&other, "x")).await;
    assert!(pass(&other, "y").await < 1 << 32);
}

#[tokio::test]
async fn latches_and_cells_survive() {
    let place = Place::new();
    let store = place.open().await;
    store.latch(&key("gate"), LatchStep::Arm { count: 3 }).await.unwrap();
    let CellWrite::Written(version) =
        store.write_cell("slot", Expect::Absent, b"ran", Some(LONG)).await.unwrap()
    else {
        panic!("the cell was not there")
    };
    reboot(&place);
    let store = place.open().await;
    assert_eq!(store.latch(&key("gate"), LatchStep::Read).await.unwrap(), 3);
    let cell = store.read_cell("slot").await.unwrap().unwrap();
    assert_eq!((cell.version, cell.value.as_slice()), (version, b"ran".as_slice()));
}

#[tokio::test]
async fn a_cell_of_an_earlier_boot_still_expires() {
    let place = Place::new();
    let store = place.open().await;
    let _written = store.write_cell("slot", Expect::Absent, b"ran", Some(LONG)).await.unwrap();
    let _for_ever = store.write_cell("other", Expect::Absent, b"ran", Some(Duration::MAX)).await.unwrap();
    // A clock of an earlier boot, far beyond ours.
    let far = "UPDATE leasehold_cell SET ttl = 0, until = 9000000000000000000 WHERE name = 'slot'";
    assert_eq!(place.plain().execute(far, []).unwrap(), 1);
    reboot(&place);
    let store = place.open().await;
    assert_eq!(store.read_cell("slot").await.unwrap(), None);
    assert!(store.read_cell("other").await.unwrap().is_some());
}

#[tokio::test]
async fn a_lease_longer_than_the_machine_was_on_does_not_outlive_it() {
    let place = Place::new();
    let store = place.open().await;
    win(&mut store.claim(Arc::new(spec("x", Duration::MAX)))).await;
    drop(store);
    reboot(&place);
    pass(&place.open().await, "x").await;
}
