//! A length of time that is a number of something.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", wait = seconds)]
async fn work(locks: &Client, seconds: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
