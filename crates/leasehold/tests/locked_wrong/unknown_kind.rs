//! A kind that there is not.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", kind = shared)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
