//! Files that are refused, each with an error that says why.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use common::{Place, claim, pass, win};
use leasehold_core::{Error, ErrorKind, backend::Backend};
use leasehold_sql::{Sqlite, SqliteConfig};

async fn refusal(path: impl Into<std::path::PathBuf>) -> Error {
    Sqlite::open(SqliteConfig::new(path)).await.unwrap_err()
}

#[tokio::test]
async fn names_that_are_no_files_are_refused() {
    for path in ["", ":memory:", "file:x?mode=memory", "/", ".", ".."] {
        let error = refusal(path).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{path:?}: {error}");
    }
    let place = Place::new();
    let error = refusal(place.folder()).await;
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    std::fs::write(place.file(), "").unwrap();
    let error = refusal(place.file().join("below-a-file")).await;
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_symbolic_link_is_refused_wherever_it_is_planted() {
    for planted in ["locks.db", "locks.db-wal", "locks.db-shm", "locks.db-sessions"] {
        let place = Place::new();
        let target = place.folder().join("target");
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, place.folder().join(planted)).unwrap();
        let error = place.try_open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{planted}: {error}");
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_folder_leads_to_the_same_store() {
    let place = Place::new();
    let link = place.folder().join("link");
    std::os::unix::fs::symlink(place.folder(), &link).unwrap();
    let (direct, linked) =
        (place.open().await, Sqlite::open(SqliteConfig::new(link.join("locks.db"))).await.unwrap());
    assert_eq!(direct.info().address, linked.info().address);
    win(&mut claim(&direct, "x")).await;
    common::lose(&mut claim(&linked, "x")).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    let place = Place::new();
    drop(place.open().await);
    std::fs::hard_link(place.file(), place.folder().join("other-name.db")).unwrap();
    let error = place.try_open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_replaced_while_in_use_is_noticed_before_anything_is_granted() {
    let place = Place::new();
    let store = place.open().await;
    pass(&store, "x").await;
    std::fs::rename(place.file(), place.folder().join("moved.db")).unwrap();
    let error = claim(&store, "x").attempt().await.unwrap_err();
    assert!(error.to_string().contains("moved or replaced"), "{error}");
    std::fs::write(place.file(), "").unwrap();
    let error = claim(&store, "x").attempt().await.unwrap_err();
    assert!(error.to_string().contains("moved or replaced"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let place = Place::new();
    let text =
        "this is a letter, and longer than the header of a database, which has a hundred bytes. ".repeat(3);
    std::fs::write(place.file(), &text).unwrap();
    let error = place.try_open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("not an SQLite database"), "{error}");
    assert_eq!(std::fs::read_to_string(place.file()).unwrap(), text);
}

#[tokio::test]
async fn a_newer_format_is_refused_by_name() {
    let place = Place::new();
    drop(place.open().await);
    let newer = "UPDATE leasehold_meta SET value = 7 WHERE key = 'format'";
    assert_eq!(place.plain().execute(newer, []).unwrap(), 1);
    let error = place.try_open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("format 7, we know 1"), "{error}");
}

#[tokio::test]
async fn the_tables_may_live_beside_an_applications_own() {
    let place = Place::new();
    place.plain().execute_batch("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (42)").unwrap();
    let store = place.open().await;
    pass(&store, "x").await;
    let id: i64 = place.plain().query_row("SELECT id FROM orders", [], |row| row.get(0)).unwrap();
    assert_eq!(id, 42);
}

#[test]
fn many_may_open_a_new_file_at_once() {
    let place = Place::new();
    let threads: Vec<_> = (0..16)
        .map(|number| {
            let file = place.file();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                let open = Sqlite::open(SqliteConfig::new(file));
                runtime.block_on(async { pass(&open.await.unwrap(), &format!("x{number}")).await })
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 1);
    }
}
