//! Functions within functions, on the same key.

use leasehold::{Client, Error, ErrorKind, locked};

use super::{LONG, is_held, on_each_store, spawn};

on_each_store! {
    a_function_enters_what_the_one_around_it_holds
    a_function_that_would_wait_for_itself_is_refused
    another_task_does_not_enter
    a_reader_within_a_reader_is_refused_unless_both_are_reentrant
    permits_that_a_task_would_wait_for_itself_to_give_back_are_refused
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

#[locked(client = locks, key = "prices", kind = read, reentrant)]
async fn reread(locks: &Client, deeper: bool) -> Result<bool, Error> {
    if !deeper {
        return Ok(true);
    }
    // A writer in line stands before every reader who comes after it.
    let (writer, mut tasks) = (locks.lock("prices").fair().wait(LONG), tokio::task::JoinSet::new());
    tasks.spawn(async move { writer.acquire().await.map(drop) });
    until_waiting(locks, "prices").await;
    assert_eq!(read(locks, false).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    Box::pin(reread(locks, false)).await
}

async fn until_waiting(locks: &Client, name: &str) {
    for _ in 0..10_000 {
        if locks.inspect(name).await.unwrap().is_some_and(|state| !state.waiters.is_empty()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("nobody waits for {name}");
}

async fn a_reader_within_a_reader_is_refused_unless_both_are_reentrant(locks: Client) {
    assert_eq!(read(&locks, true).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert!(read(&locks, false).await.unwrap());
    assert!(reread(&locks, true).await.unwrap());
}

#[locked(client = locks, key = "uploads", kind = permits(takes[0], 3))]
async fn upload(locks: &Client, takes: &[u32]) -> Result<u32, Error> {
    match &takes[1..] {
        [] => Ok(takes[0]),
        more => Ok(takes[0] + Box::pin(upload(locks, more)).await?),
    }
}

async fn permits_that_a_task_would_wait_for_itself_to_give_back_are_refused(locks: Client) {
    assert_eq!(upload(&locks, &[1, 1, 1]).await.unwrap(), 3);
    for takes in [&[2, 2][..], &[1, 1, 2], &[3, 1]] {
        assert_eq!(upload(&locks, takes).await.unwrap_err().kind(), ErrorKind::WouldDeadlock, "{takes:?}");
    }
    assert_eq!(upload(&locks, &[3]).await.unwrap(), 3, "all were given back");
}
