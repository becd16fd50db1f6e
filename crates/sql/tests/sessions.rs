//! Sessions and bells between stores of one process.
//!
//! Nothing here starts a process: the child would for a moment have copies of all sessions' descriptors.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![cfg(target_os = "linux")]

mod common;

use std::{os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use common::{LONG, Place, claim, lose, pass, spec, stand_in_line, win};
use leasehold_core::backend::{Backend, Life, Release, Renew, Renewal};
use leasehold_sql::{Sqlite, SqliteConfig};

#[tokio::test]
async fn a_release_wakes_a_waiter_of_another_store_in_this_process() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let (mut holder, mut waiter) = (claim(&ours, "x"), claim(&theirs, "x"));
    win(&mut holder).await;
    stand_in_line(&mut waiter).await;
    assert_eq!(holder.release().await.unwrap(), Release::Released);
    waiter.changed().await.unwrap();
    win(&mut waiter).await;
}

#[test]
fn waiters_are_woken_in_a_runtime_without_input_and_output() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let place = Place::new();
        let (ours, theirs) = (place.open().await, place.open().await);
        let (mut holder, mut waiter) = (claim(&ours, "x"), claim(&theirs, "x"));
        win(&mut holder).await;
        stand_in_line(&mut waiter).await;
        assert_eq!(holder.release().await.unwrap(), Release::Released);
        waiter.changed().await.unwrap();
        win(&mut waiter).await;
    });
}

#[tokio::test]
async fn a_copy_of_the_descriptor_keeps_the_session_alive() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let mut holder = claim(&ours, "x");
    win(&mut holder).await;
    let copy = ours.session().unwrap();
    // As if the process were gone: nobody releases anything.
    drop((holder, ours));
    let mut waiter = claim(&theirs, "x");
    lose(&mut waiter).await;
    drop(copy);
    win(&mut waiter).await;
}

#[tokio::test]
async fn a_copy_keeps_the_session_alive_even_after_the_store_was_closed() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    win(&mut claim(&ours, "x")).await;
    let copy = ours.session().unwrap();
    ours.close().await.unwrap();
    let mut waiter = claim(&theirs, "x");
    lose(&mut waiter).await;
    drop(copy);
    win(&mut waiter).await;
}

#[tokio::test]
async fn a_store_that_is_closed_or_dropped_leaves_no_session_behind() {
    let place = Place::new();
    let ours = place.open().await;
    assert!(place.sessions().is_empty(), "who has not asked for a lock has no session");
    pass(&ours, "x").await;
    assert_eq!(place.sessions().len(), 1);
    ours.close().await.unwrap();
    assert!(place.sessions().is_empty());
    let ours = place.open().await;
    pass(&ours, "x").await;
    drop(ours);
    assert!(place.sessions().is_empty());
}

#[tokio::test]
async fn a_store_closed_with_locks_held_leaves_the_proof_that_they_are_free() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    win(&mut claim(&ours, "x")).await;
    win(&mut claim(&ours, "y")).await;
    ours.close().await.unwrap();
    assert_eq!(place.sessions().len(), 1);
    pass(&theirs, "x").await;
    pass(&theirs, "y").await;
    theirs.close().await.unwrap();
    assert!(place.sessions().is_empty(), "nobody needs it any more");
}

#[tokio::test]
async fn session_files_removed_under_a_live_holder_let_nobody_else_in() {
    let place = Place::new();
    let (ours, before) = (place.open().await, place.open().await);
    let mut holder = claim(&ours, "x");
    win(&mut holder).await;
    for session in place.sessions() {
        std::fs::remove_file(place.session_file(&session)).unwrap();
    }
    lose(&mut claim(&before, "x")).await;
    std::fs::remove_dir_all(place.folder().join("locks.db-sessions")).unwrap();
    lose(&mut claim(&before, "x")).await;
    let after = place.open().await;
    lose(&mut claim(&after, "x")).await;
    assert_eq!(holder.release().await.unwrap(), Release::Released);
    win(&mut claim(&after, "x")).await;
}

#[tokio::test]
async fn a_holder_whose_session_file_is_gone_goes_on_renewing() {
    let place = Place::new();
    let ours = place.open().await;
    let spec = Arc::new(spec("x", LONG));
    win(&mut ours.claim(spec.clone())).await;
    std::fs::remove_dir_all(place.folder().join("locks.db-sessions")).unwrap();
    let renew = Renew { key: spec.key.clone(), id: spec.id, mode: spec.mode, ttl: LONG };
    let renewals = ours.renew(&[renew]).await;
    assert!(matches!(renewals[..], [Ok(Renewal::Renewed { .. })]), "{renewals:?}");
    lose(&mut claim(&place.open().await, "x")).await;
}

#[tokio::test]
async fn a_copy_in_place_of_a_session_file_proves_nothing() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    win(&mut claim(&ours, "x")).await;
    let file = place.session_file(&place.sessions()[0]);
    let content = std::fs::read(&file).unwrap();
    for content in [content, Vec::new()] {
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, content).unwrap();
        lose(&mut claim(&theirs, "x")).await;
    }
}

#[tokio::test]
async fn a_detached_claim_outlives_its_process() {
    let place = Place::new();
    let (ours, theirs) = (place.open().await, place.open().await);
    let mut ticket = spec("x", LONG);
    ticket.life = Life::Detached;
    let (id, mode) = (ticket.id, ticket.mode);
    win(&mut ours.claim(Arc::new(ticket))).await;
    drop(ours);
    let mut waiter = claim(&theirs, "x");
    lose(&mut waiter).await;
    assert_eq!(theirs.release(&common::key("x"), id, mode).await.unwrap(), Release::Released);
    win(&mut waiter).await;
}

#[tokio::test]
async fn what_the_store_makes_is_private() {
    let place = Place::new();
    let file = place.folder().join("new/folders/locks.db");
    let store = Sqlite::open(SqliteConfig::new(&file)).await.unwrap();
    win(&mut claim(&store, "x")).await;
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = place.folder();
    for made in ["new", "new/folders", "new/folders/locks.db-sessions"] {
        assert_eq!(mode(folder.join(made)), 0o700, "{made}");
    }
    let session =
        std::fs::read_dir(folder.join("new/folders/locks.db-sessions")).unwrap().next().unwrap().unwrap();
    assert_eq!(mode(session.path()), 0o600);
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(mode(folder.join(format!("new/folders/locks.db{suffix}"))), 0o600, "{suffix}");
    }
}
