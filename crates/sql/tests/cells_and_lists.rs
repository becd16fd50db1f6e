//! Cells and listings.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{LONG, Place, claim, key, pass, spec, stand_in_line, win};
use leasehold_core::backend::{Backend, CellWrite, Expect, Kind};

fn version(write: &CellWrite) -> u64 {
    match write {
        CellWrite::Written(version) => *version,
        CellWrite::Conflict => panic!("the cell was not as expected"),
    }
}

#[tokio::test]
async fn a_cell_is_written_only_if_it_is_as_expected() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let first = version(&ours.write_cell("c", Expect::Absent, b"one", None).await.unwrap());
    assert_eq!(theirs.write_cell("c", Expect::Absent, b"two", None).await.unwrap(), CellWrite::Conflict);
    assert_eq!(theirs.read_cell("c").await.unwrap().unwrap().value, b"one");
    let second = version(&theirs.write_cell("c", Expect::Version(first), b"two", None).await.unwrap());
    assert!(second > first);
    assert_eq!(
        ours.write_cell("c", Expect::Version(first), b"three", None).await.unwrap(),
        CellWrite::Conflict
    );
    let cell = ours.read_cell("c").await.unwrap().unwrap();
    assert_eq!((cell.version, cell.value.as_slice()), (second, b"two".as_slice()));
}

#[tokio::test]
async fn a_version_never_returns_not_even_after_expiry() {
    let place = Place::new();
    let store = place.open().await;
    let mut last = 0;
    for _ in 0..5 {
        let written = store.write_cell("c", Expect::Absent, b"brief", Some(Duration::ZERO)).await.unwrap();
        let version = version(&written);
        assert!(version > last);
        last = version;
        assert_eq!(store.read_cell("c").await.unwrap(), None);
        let late = store.write_cell("c", Expect::Version(version), b"late", None).await.unwrap();
        assert_eq!(late, CellWrite::Conflict);
    }
}

#[tokio::test]
async fn expired_cells_do_not_pile_up() {
    let place = Place::new();
    let store = place.open().await;
    for number in 0..200 {
        let name = format!("c{number}");
        version(&store.write_cell(&name, Expect::Absent, b"", Some(Duration::ZERO)).await.unwrap());
    }
    let left: i64 =
        place.plain().query_row("SELECT count(*) FROM leasehold_cell", [], |row| row.get(0)).unwrap();
    assert!(left <= 1, "{left} left");
}

#[tokio::test]
async fn cells_are_listed_by_name_a_page_at_a_time() {
    let place = Place::new();
    let store = place.open().await;
    for name in ["b/3", "a", "b/1", "b/2", "b/4", "c", "B/1"] {
        version(&store.write_cell(name, Expect::Absent, name.as_bytes(), Some(LONG)).await.unwrap());
    }
    version(&store.write_cell("b/gone", Expect::Absent, b"", Some(Duration::ZERO)).await.unwrap());
    let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.list_cells("b/", cursor.as_deref(), 2).await.unwrap();
        names.extend(page.cells.into_iter().map(|cell| cell.name));
        pages += 1;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, ["b/1", "b/2", "b/3", "b/4"]);
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn locks_in_use_are_listed_a_page_at_a_time() {
    let place = Place::new();
    let store = place.open().await;
    let mut held = Vec::new();
    for number in 0..25 {
        pass(&store, &format!("job/free{number}")).await;
        let mut claim = claim(&store, &format!("job/{number:02}"));
        win(&mut claim).await;
        held.push(claim);
    }
    win(&mut store.claim(Arc::new(spec("job/expired", Duration::ZERO)))).await;
    win(&mut claim(&store, "other")).await;
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list("job/", cursor.as_deref(), 10).await.unwrap();
        assert!(page.locks.len() <= 10);
        names.extend(page.locks.into_iter().map(|lock| lock.name));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (0..25).map(|number| format!("job/{number:02}")).collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn one_name_is_shown_with_holder_and_waiters() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let mut holder = claim(&ours, "x");
    let grant = win(&mut holder).await;
    let mut waiter = claim(&theirs, "x");
    stand_in_line(&mut waiter).await;
    let state = theirs.inspect(&key("x")).await.unwrap().unwrap();
    assert_eq!((state.kind, state.fence), (Kind::Lock, grant.fence));
    assert_eq!((state.holders.len(), state.waiters.len()), (1, 1));
    assert!(theirs.inspect(&key("y")).await.unwrap().is_none());
    // A session that is over is not shown, though nobody has buried it yet.
    drop((holder, ours));
    let state = theirs.inspect(&key("x")).await.unwrap().unwrap();
    assert_eq!((state.holders.len(), state.waiters.len()), (0, 1));
}
