//! Permits without numbers.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", kind = permits)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
