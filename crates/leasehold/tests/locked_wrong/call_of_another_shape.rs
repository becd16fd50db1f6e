//! A function that does not take the error.

use leasehold::{Client, Error, locked};

async fn when_busy() -> Result<(), Error> {
    Ok(())
}

#[locked(client = locks, key = "a", on_busy = call(when_busy))]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
