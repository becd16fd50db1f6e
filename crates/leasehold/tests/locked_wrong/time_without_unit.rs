//! A number without a unit.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", wait = 5)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
