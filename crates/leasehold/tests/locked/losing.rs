//! A lock that is lost while the body runs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use leasehold::{Client, Error, ErrorKind, backend::BreakOutcome, locked};
use tokio::sync::oneshot;

use super::{on_each_store, spawn};

on_each_store! {
    a_body_is_dropped_once_its_lock_is_lost
    a_body_that_is_to_finish_does
    a_body_that_ends_after_the_loss_without_waiting_has_failed
    what_was_held_is_not_held_after_the_function
}

/// Breaks whoever holds the name.
async fn break_it(locks: &Client, name: &str) {
    let id = locks.inspect(name).await.unwrap().unwrap().holders[0].id;
    assert_eq!(locks.break_hold(name, id, "test").await.unwrap(), BreakOutcome::Broken);
}

/// Tells that what it was part of is gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[locked(client = locks, key = "a", ttl = "900ms")]
async fn forever(locks: Client, began: oneshot::Sender<()>, gone: Gone) -> Result<(), Error> {
    began.send(()).unwrap();
    std::future::pending::<()>().await;
    drop(gone);
    Ok(())
}

async fn a_body_is_dropped_once_its_lock_is_lost(locks: Client) {
    let (began, starts) = oneshot::channel();
    let gone = Arc::new(AtomicBool::new(false));
    let runs = spawn(forever(locks.clone(), began, Gone(gone.clone())));
    starts.await.unwrap();
    break_it(&locks, "a").await;
    assert_eq!(runs.await.unwrap().unwrap_err().kind(), ErrorKind::Lost);
    assert!(gone.load(Ordering::SeqCst));
}

#[locked(client = locks, key = "a", ttl = "900ms", on_lost = finish)]
async fn to_the_end(locks: Client, began: oneshot::Sender<()>) -> Result<bool, Error> {
    began.send(()).unwrap();
    let held = leasehold::held().unwrap();
    while held.check().is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    Ok(true)
}

async fn a_body_that_is_to_finish_does(locks: Client) {
    let (began, starts) = oneshot::channel();
    let runs = spawn(to_the_end(locks.clone(), began));
    starts.await.unwrap();
    break_it(&locks, "a").await;
    assert!(runs.await.unwrap().unwrap());
}

#[locked(client = locks, key = "a")]
async fn smuggle(locks: &Client) -> Result<leasehold::Held, Error> {
    let held = leasehold::held().unwrap();
    held.check()?;
    Ok(held)
}

async fn what_was_held_is_not_held_after_the_function(locks: Client) {
    let held = smuggle(&locks).await.unwrap();
    assert_eq!(held.check().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((held.fence(), held.fence_of("a"), held.remaining()), (0, None, std::time::Duration::ZERO));
    assert!(leasehold::held().is_none());
}

/// Stays on its thread until its lock is lost.
#[locked(client = locks, key = "a", ttl = "200ms", max_hold = "200ms")]
async fn stays(locks: &Client, said: Result<(), Error>) -> Result<(), Error> {
    let held = leasehold::held().unwrap();
    while held.check().is_ok() {
        std::thread::yield_now();
    }
    said
}

async fn a_body_that_ends_after_the_loss_without_waiting_has_failed(locks: Client) {
    assert_eq!(stays(&locks, Ok(())).await.unwrap_err().kind(), ErrorKind::Lost);
    let own = Error::new(ErrorKind::Internal, leasehold::Operation::Check, "its own");
    assert_eq!(stays(&locks, Err(own)).await.unwrap_err().kind(), ErrorKind::Internal);
}
