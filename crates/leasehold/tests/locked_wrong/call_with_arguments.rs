//! A function that is called with arguments.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_busy = call(when_busy(1)))]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
