//! A value that is not said.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_busy = return)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
