//! Several keys, each with a word of its own.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", key = "b")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
