//! An option without its value.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", wait)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
