//! Functions within functions, on the same key.

use leasehold::{Client, Error, ErrorKind, locked};

use super::{LONG, is_held, on_each_store, spawn};

on_each_store! {
    a_function_enters_what_the_one_around_it_holds
    a_function_that_would_wait_for_itself_is_refused
    another_task_does_not_enter
    a_reader_within_a_reader_shares
}

#[locked(client = locks, key = "report", reentrant, wait = LONG)]
async fn outer(locks: &Client) -> Result<u64, Error> {
    let ours = leasehold::held().unwrap().fence();
    assert_eq!(inner(locks).await?, ours);
    assert!(is_held(locks, "report").await, "the inner function has not released it");
    assert_eq!(both(locks).await?, ours);
    Ok(ours)
}

#[locked(client = locks, key = "report", reentrant)]
async fn inner(locks: &Client) -> Result<u64, Error> {
    Ok(leasehold::held().unwrap().fence())
}

#[locked(client = locks, key = ["report", "other"], reentrant)]
async fn both(locks: &Client) -> Result<u64, Error> {
    Ok(leasehold::held().unwrap().fence_of("report").unwrap())
}

async fn a_function_enters_what_the_one_around_it_holds(locks: Client) {
    outer(&locks).await.unwrap();
    assert!(!is_held(&locks, "report").await);
}

#[locked(client = locks, key = "report")]
async fn not_reentrant(locks: &Client, deeper: u32) -> Result<u64, Error> {
    match deeper {
        0 => Ok(0),
        1 => Box::pin(not_reentrant(locks, 0)).await,
        _ => inner(locks).await,
    }
}

#[locked(client = locks, key = "report", reentrant)]
async fn only_outside(locks: &Client) -> Result<u64, Error> {
    not_reentrant(locks, 0).await
}

async fn a_function_that_would_wait_for_itself_is_refused(locks: Client) {
    for refused in
        [not_reentrant(&locks, 1).await, not_reentrant(&locks, 2).await, only_outside(&locks).await]
    {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    }
    not_reentrant(&locks, 0).await.unwrap();
}

#[locked(client = locks, key = "report", reentrant)]
async fn elsewhere(locks: &Client) -> Result<bool, Error> {
    let theirs = locks.clone();
    let tried = spawn(async move { quick(&theirs).await }).await;
    Ok(tried.unwrap()?.is_none())
}

#[locked(client = locks, key = "report", reentrant, on_busy = skip)]
async fn quick(locks: &Client) -> Result<Option<()>, Error> {
    Ok(Some(()))
}

async fn another_task_does_not_enter(locks: Client) {
    assert!(elsewhere(&locks).await.unwrap());
}

#[locked(client = locks, key = "prices", kind = read)]
async fn read(locks: &Client, deeper: bool) -> Result<bool, Error> {
    if deeper { Box::pin(read(locks, false)).await } else { Ok(true) }
}

async fn a_reader_within_a_reader_shares(locks: Client) {
    assert!(read(&locks, true).await.unwrap());
}
