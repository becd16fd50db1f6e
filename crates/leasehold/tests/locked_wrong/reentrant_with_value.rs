//! A switch with a value.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", reentrant = true)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
