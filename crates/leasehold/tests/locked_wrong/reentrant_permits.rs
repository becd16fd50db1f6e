//! Permits that are to be entered again.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", kind = permits(1, 3), reentrant)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
