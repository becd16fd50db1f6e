//! A function that is skipped, and cannot say so.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_busy = skip)]
async fn work(locks: &Client) -> Result<u32, Error> {
    Ok(1)
}

fn main() {}
