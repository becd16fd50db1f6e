//! The kinds of locks, several at once, and lengths of time.

use std::time::Duration;

use leasehold::{Client, Error, locked};

use super::{LONG, is_held, on_each_store};

on_each_store! {
    readers_share_and_a_writer_does_not
    permits_are_counted
    a_fair_lock_is_a_lock
    several_keys_are_held_together
    leases_are_as_long_as_they_say
}

#[locked(client = locks, key = "prices", kind = read, on_busy = skip)]
async fn read(locks: &Client) -> Result<Option<bool>, Error> {
    let theirs = locks.rwlock("prices");
    let (another, writer) = (theirs.read().try_acquire().await?, theirs.write().try_acquire().await?);
    Ok(Some(another.is_some() && writer.is_none()))
}

#[locked(client = locks, key = "prices", kind = write, wait = LONG)]
async fn write(locks: &Client) -> Result<bool, Error> {
    Ok(locks.rwlock("prices").read().try_acquire().await?.is_none())
}

async fn readers_share_and_a_writer_does_not(locks: Client) {
    assert_eq!(read(&locks).await.unwrap(), Some(true));
    assert!(write(&locks).await.unwrap());
}

#[locked(client = locks, key = "uploads", kind = permits(take, 3), on_busy = skip)]
async fn upload(locks: &Client, take: u32, others: u32) -> Result<Option<bool>, Error> {
    Ok(Some(locks.semaphore("uploads", 3).permits(others).try_acquire().await?.is_some()))
}

async fn permits_are_counted(locks: Client) {
    assert_eq!(upload(&locks, 2, 1).await.unwrap(), Some(true));
    assert_eq!(upload(&locks, 2, 2).await.unwrap(), Some(false), "four of three cannot be out");
    let theirs = locks.semaphore("uploads", 3).permits(2).wait(LONG).acquire().await.unwrap();
    assert_eq!(upload(&locks, 2, 1).await.unwrap(), None);
    theirs.release().await.unwrap();
}

#[locked(client = locks, key = "printer", kind = fair, wait = LONG)]
async fn print(locks: &Client) -> Result<bool, Error> {
    Ok(locks.lock("printer").fair().try_acquire().await?.is_none())
}

async fn a_fair_lock_is_a_lock(locks: Client) {
    assert!(print(&locks).await.unwrap());
}

#[locked(client = locks, key = ["account:{to}", "account:{from}"], wait = LONG)]
async fn transfer(locks: &Client, from: u32, to: u32) -> Result<bool, Error> {
    let held = leasehold::held().unwrap();
    assert!(held.fence_of("account:1").is_some() && held.fence_of("account:3").is_none());
    Ok(is_held(locks, "account:1").await && is_held(locks, "account:2").await)
}

async fn several_keys_are_held_together(locks: Client) {
    assert!(transfer(&locks, 1, 2).await.unwrap());
    let both = tokio::join!(transfer(&locks, 1, 2), transfer(&locks, 2, 1));
    assert!(both.0.unwrap() && both.1.unwrap());
}

const HOUR: Duration = Duration::from_secs(3600);

#[locked(client = locks, key = "a", ttl = "10m", wait = HOUR)]
async fn long(locks: &Client) -> Result<Duration, Error> {
    Ok(leasehold::held().unwrap().remaining())
}

#[locked(client = locks, key = "a", max_hold = limit, ttl = "10m", wait = "1h 30m")]
async fn limited(locks: &Client, limit: Duration) -> Result<Duration, Error> {
    Ok(leasehold::held().unwrap().remaining())
}

async fn leases_are_as_long_as_they_say(locks: Client) {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let remaining = long(&locks).await.unwrap();
    assert!(remaining > minutes(1) && remaining <= minutes(10), "{remaining:?}");
    let remaining = limited(&locks, minutes(2)).await.unwrap();
    assert!(remaining <= minutes(2), "{remaining:?}");
}
