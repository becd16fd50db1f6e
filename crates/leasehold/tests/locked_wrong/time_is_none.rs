//! A text that is no length of time.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", ttl = "5 parsecs")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
