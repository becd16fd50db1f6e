//! However a body ends, the lock is free afterwards; and it is held all the while.

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::{Client, Error, ErrorKind, Operation, locked};

use super::{LONG, is_held, on_each_store, spawn};

on_each_store! {
    the_key_is_evaluated_once_and_held_by_the_body
    braces_are_written_twice
    an_early_return_releases
    a_question_mark_releases
    a_panic_releases
    a_dropped_future_releases
    bodies_of_one_key_never_overlap
}

#[derive(Debug)]
struct Order {
    id: u32,
}

fn count(counter: &AtomicU32) -> u32 {
    counter.fetch_add(1, Ordering::SeqCst)
}

#[locked(client = locks, key = "order:{order.id}:{kind.to_uppercase()}:{count(counter)}")]
async fn ship(locks: &Client, order: &Order, kind: &str, counter: &AtomicU32) -> Result<u32, Error> {
    assert!(is_held(locks, "order:42:EXPRESS:0").await);
    Ok(counter.load(Ordering::SeqCst))
}

async fn the_key_is_evaluated_once_and_held_by_the_body(locks: Client) {
    let counter = AtomicU32::new(0);
    assert_eq!(ship(&locks, &Order { id: 42 }, "express", &counter).await.unwrap(), 1);
    assert!(!is_held(&locks, "order:42:EXPRESS:0").await);
}

#[locked(client = locks, key = "{{shop}}:{id + 1}")]
async fn tagged(locks: &Client, id: u32) -> Result<bool, Error> {
    Ok(is_held(locks, "{shop}:2").await)
}

async fn braces_are_written_twice(locks: Client) {
    assert!(tagged(&locks, 1).await.unwrap());
}

#[locked(client = locks, key = "a", wait = LONG)]
async fn early(locks: &Client, leave: bool) -> Result<&'static str, Error> {
    if leave {
        return Ok("early");
    }
    for _ in 0..3 {
        if !leave {
            return Ok("from a loop");
        }
    }
    Ok("late")
}

async fn an_early_return_releases(locks: Client) {
    assert_eq!(early(&locks, true).await.unwrap(), "early");
    assert!(!is_held(&locks, "a").await);
    assert_eq!(early(&locks, false).await.unwrap(), "from a loop");
    assert!(!is_held(&locks, "a").await);
}

#[derive(Debug)]
enum ShopError {
    Text(std::num::ParseIntError),
    Lock(Error),
}

impl From<std::num::ParseIntError> for ShopError {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::Text(error)
    }
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

#[locked(client = locks, key = "a", wait = LONG)]
async fn parse(locks: &Client, text: &str) -> Result<u32, ShopError> {
    let number: u32 = text.parse()?;
    Ok(number)
}

async fn a_question_mark_releases(locks: Client) {
    assert!(matches!(parse(&locks, "none").await, Err(ShopError::Text(why)) if !why.to_string().is_empty()));
    assert!(!is_held(&locks, "a").await);
    assert_eq!(parse(&locks, "7").await.unwrap(), 7);
    locks.shutdown(LONG).await.unwrap();
    assert!(
        matches!(parse(&locks, "7").await, Err(ShopError::Lock(error)) if error.kind() == ErrorKind::Closed)
    );
}

#[locked(client = locks, key = "a", wait = LONG)]
async fn panic_if(locks: &Client, panics: bool) -> Result<u64, Error> {
    assert!(!panics, "in the body");
    Ok(leasehold::held().unwrap().fence())
}

async fn a_panic_releases(locks: Client) {
    let theirs = locks.clone();
    let panicked = spawn(async move { panic_if(&theirs, true).await }).await;
    assert!(panicked.unwrap_err().is_panic());
    panic_if(&locks, false).await.unwrap();
}

#[locked(client = locks, key = "a", wait = LONG)]
async fn never(locks: &Client, began: tokio::sync::oneshot::Sender<()>) -> Result<(), Error> {
    began.send(()).unwrap();
    std::future::pending().await
}

async fn a_dropped_future_releases(locks: Client) {
    let (began, begins) = tokio::sync::oneshot::channel();
    tokio::select! {
        done = never(&locks, began) => panic!("{done:?}"),
        started = begins => started.unwrap(),
    }
    panic_if(&locks, false).await.unwrap();
}

#[locked(client = locks, key = "a")]
async fn alone(locks: Client, inside: &AtomicU32) -> Result<(), Error> {
    if inside.fetch_add(1, Ordering::SeqCst) > 0 {
        return Err(Error::new(ErrorKind::Internal, Operation::Check, "two at once"));
    }
    tokio::task::yield_now().await;
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

async fn bodies_of_one_key_never_overlap(locks: Client) {
    let inside = std::sync::Arc::new(AtomicU32::new(0));
    let tasks = (0..20).map(|_| {
        let (locks, inside) = (locks.clone(), inside.clone());
        async move { alone(locks, &inside).await }
    });
    let done: tokio::task::JoinSet<_> = tasks.collect();
    done.join_all().await.into_iter().collect::<Result<(), _>>().unwrap();
}
