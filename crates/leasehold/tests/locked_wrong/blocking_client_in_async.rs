//! A blocking client in an asynchronous function.

use leasehold::{Error, blocking::Client, locked};

#[locked(client = locks, key = "a")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
