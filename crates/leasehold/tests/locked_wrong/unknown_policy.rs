//! A policy that there is not: none runs the body without the lock.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_busy = ignore)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
