//! What becomes of a function whose lock is busy: whatever it says, its body does not run.

use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::{Client, Error, ErrorKind, locked};

use super::{LONG, on_each_store};

on_each_store! {
    an_error_says_who_holds_it
    a_skipped_function_returns_none
    a_value_is_returned_instead
    another_function_is_called_instead
    a_store_that_fails_is_an_error_whatever_the_policy
    waiting_comes_before_any_policy
}

#[locked(client = locks, key = "a", on_busy = error)]
async fn or_error(locks: &Client, ran: &AtomicBool) -> Result<(), Error> {
    ran.store(true, Ordering::SeqCst);
    Ok(())
}

async fn an_error_says_who_holds_it(locks: Client) {
    let (guard, ran) = (locks.lock("a").label("the other").acquire().await.unwrap(), AtomicBool::new(false));
    let busy = or_error(&locks, &ran).await.unwrap_err();
    assert_eq!((busy.kind(), busy.name()), (ErrorKind::Busy, Some("a")));
    assert!(!ran.load(Ordering::SeqCst));
    guard.release().await.unwrap();
    or_error(&locks, &ran).await.unwrap();
    assert!(ran.load(Ordering::SeqCst));
}

#[locked(client = locks, key = "a", on_busy = skip)]
async fn or_skip(locks: &Client, ran: &AtomicBool) -> Result<Option<u32>, Error> {
    ran.store(true, Ordering::SeqCst);
    Ok(Some(1))
}

async fn a_skipped_function_returns_none(locks: Client) {
    let (guard, ran) = (locks.lock("a").acquire().await.unwrap(), AtomicBool::new(false));
    assert_eq!(or_skip(&locks, &ran).await.unwrap(), None);
    assert!(!ran.load(Ordering::SeqCst));
    guard.release().await.unwrap();
    assert_eq!(or_skip(&locks, &ran).await.unwrap(), Some(1));
}

#[locked(client = locks, key = "a", on_busy = return(Ok(otherwise.len())))]
async fn or_return(locks: &Client, otherwise: String, ran: &AtomicBool) -> Result<usize, Error> {
    ran.store(true, Ordering::SeqCst);
    Ok(otherwise.into_bytes().len() + 100)
}

async fn a_value_is_returned_instead(locks: Client) {
    let (guard, ran) = (locks.lock("a").acquire().await.unwrap(), AtomicBool::new(false));
    assert_eq!(or_return(&locks, "four".into(), &ran).await.unwrap(), 4);
    assert!(!ran.load(Ordering::SeqCst));
    guard.release().await.unwrap();
    assert_eq!(or_return(&locks, "four".into(), &ran).await.unwrap(), 104);
}

async fn when_busy(error: Error) -> Result<String, Error> {
    tokio::task::yield_now().await;
    assert_eq!(error.kind(), ErrorKind::Busy);
    Ok(format!("not now: {}", error.name().unwrap()))
}

#[locked(client = locks, key = "a", on_busy = call(when_busy))]
async fn or_call(locks: &Client, ran: &AtomicBool) -> Result<String, Error> {
    ran.store(true, Ordering::SeqCst);
    Ok("done".to_owned())
}

async fn another_function_is_called_instead(locks: Client) {
    let (guard, ran) = (locks.lock("a").acquire().await.unwrap(), AtomicBool::new(false));
    assert_eq!(or_call(&locks, &ran).await.unwrap(), "not now: a");
    assert!(!ran.load(Ordering::SeqCst));
    guard.release().await.unwrap();
    assert_eq!(or_call(&locks, &ran).await.unwrap(), "done");
}

async fn a_store_that_fails_is_an_error_whatever_the_policy(locks: Client) {
    locks.shutdown(LONG).await.unwrap();
    let ran = AtomicBool::new(false);
    for error in [
        or_error(&locks, &ran).await.unwrap_err(),
        or_skip(&locks, &ran).await.unwrap_err(),
        or_return(&locks, String::new(), &ran).await.unwrap_err(),
        or_call(&locks, &ran).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    assert!(!ran.load(Ordering::SeqCst));
}

#[locked(client = locks, key = "a", wait = LONG, on_busy = skip)]
async fn wait_or_skip(locks: &Client) -> Result<Option<()>, Error> {
    Ok(Some(()))
}

async fn waiting_comes_before_any_policy(locks: Client) {
    let guard = locks.lock("a").acquire().await.unwrap();
    let (waited, released) = tokio::join!(wait_or_skip(&locks), guard.release());
    released.unwrap();
    assert_eq!(waited.unwrap(), Some(()));
}
