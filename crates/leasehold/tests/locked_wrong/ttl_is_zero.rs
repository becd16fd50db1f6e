//! A lease that ends as it begins.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", ttl = "0s")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
