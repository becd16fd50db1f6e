//! Small versioned values beside the locks.

use std::sync::Arc;

use leasehold_core::{
    Result,
    backend::{Backend, CellWrite, Expect},
};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, joined},
};
use crate::scripted::Script;

/// The version of a cell after a write that must succeed.
#[track_caller]
fn version(written: Result<CellWrite>) -> u64 {
    match written.unwrap() {
        CellWrite::Written(version) => version,
        CellWrite::Conflict => panic!("the cell was as expected"),
    }
}

/// A cell is written only if it is as expected, and its version grows with every write.
pub(super) async fn a_cell_changes_only_as_expected(fixture: Fixture) {
    let (one, other) = (fixture.backend(&Script::new()).await, fixture.backend(&Script::new()).await);
    let name = &fixture.name("cell");
    assert_eq!(one.read_cell(name).await.unwrap(), None);
    assert_eq!(one.write_cell(name, Expect::Version(1), b"x", None).await.unwrap(), CellWrite::Conflict);
    let first = version(one.write_cell(name, Expect::Absent, b"first", None).await);
    assert_eq!(other.write_cell(name, Expect::Absent, b"x", None).await.unwrap(), CellWrite::Conflict);
    let second = version(other.write_cell(name, Expect::Version(first), b"second", None).await);
    assert!(second > first);
    assert_eq!(one.write_cell(name, Expect::Version(first), b"x", None).await.unwrap(), CellWrite::Conflict);
    let cell = one.read_cell(name).await.unwrap().unwrap();
    assert_eq!((cell.name.as_str(), cell.version, &cell.value[..]), (name.as_str(), second, &b"second"[..]));
}

/// Values are bytes, of any sort and none.
pub(super) async fn a_cell_holds_any_bytes(fixture: Fixture) {
    let backend = fixture.backend(&Script::new()).await;
    let every: Vec<u8> = (0..=255).cycle().take(16 * 1024).collect();
    for value in [&b""[..], b"\0", b"\xff\xfe", b"'; --", "锁".as_bytes(), &every] {
        let name = fixture.name("bytes 锁");
        version(backend.write_cell(&name, Expect::Absent, value, None).await);
        assert_eq!(backend.read_cell(&name).await.unwrap().unwrap().value, value);
    }
}

/// A cell with a life of its own is gone after it, and may be written as if it had never been.
pub(super) async fn a_cell_expires(fixture: Fixture) {
    let (backend, name) = (fixture.backend(&Script::new()).await, fixture.name("expires"));
    let ttl = Some(fixture.brief().await);
    let first = version(backend.write_cell(&name, Expect::Absent, b"x", ttl).await);
    eventually(async || backend.read_cell(&name).await.unwrap().is_none()).await;
    assert!(backend.list_cells(&name, None, 10).await.unwrap().cells.is_empty());
    assert_eq!(
        backend.write_cell(&name, Expect::Version(first), b"x", None).await.unwrap(),
        CellWrite::Conflict
    );
    let second = version(backend.write_cell(&name, Expect::Absent, b"y", ttl).await);
    // Written without a life, it stays.
    version(backend.write_cell(&name, Expect::Version(second), b"z", None).await);
    fixture.time().pause(fixture.brief().await * 2).await;
    assert_eq!(backend.read_cell(&name).await.unwrap().unwrap().value, b"z");
}

/// Cells are listed by prefix, in the order of their names, a page at a time, and locks are not among them.
pub(super) async fn cells_are_listed_by_name(fixture: Fixture) {
    let (backend, mark) = (fixture.backend(&Script::new()).await, fixture.name("listed"));
    let client = fixture.client().await;
    let guard = client.lock(&format!("{mark}/lock")).acquire().await.unwrap();
    let names: Vec<String> = (0..7).map(|number| format!("{mark}/{number}")).collect();
    for name in names.iter().rev() {
        version(backend.write_cell(name, Expect::Absent, name.as_bytes(), None).await);
    }
    version(backend.write_cell(&format!("{mark}0"), Expect::Absent, b"", None).await);
    for limit in [1, 2, 7, 100] {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = backend.list_cells(&format!("{mark}/"), cursor.as_deref(), limit).await.unwrap();
            assert!(page.cells.len() <= limit);
            found.extend(page.cells.into_iter().map(|cell| cell.name));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, names, "{limit} at a time");
    }
    guard.release().await.unwrap();
}

/// Eight tasks that read, add and write lose nothing.
pub(super) async fn compare_and_set_loses_no_update(fixture: Fixture) {
    let name = fixture.name("counter");
    let backends: [Arc<dyn Backend>; 2] =
        [fixture.backend(&Script::new()).await, fixture.backend(&Script::new()).await];
    version(backends[0].write_cell(&name, Expect::Absent, &0_u64.to_le_bytes(), None).await);
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let (backend, name) = (backends[task % 2].clone(), name.clone());
        tasks.spawn(async move {
            for _ in 0..10 {
                while !added(&*backend, &name).await {}
            }
        });
    }
    joined(tasks).await;
    let cell = backends[0].read_cell(&name).await.unwrap().unwrap();
    assert_eq!(u64::from_le_bytes(cell.value.try_into().unwrap()), 80);
}

async fn added(backend: &dyn Backend, name: &str) -> bool {
    let cell = backend.read_cell(name).await.unwrap().unwrap();
    let count = u64::from_le_bytes(cell.value.try_into().unwrap()) + 1;
    let written = backend.write_cell(name, Expect::Version(cell.version), &count.to_le_bytes(), None).await;
    written.unwrap() != CellWrite::Conflict
}
