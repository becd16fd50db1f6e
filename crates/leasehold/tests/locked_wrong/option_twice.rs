//! An option that is said twice.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", wait = "1s", wait = "2s")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
