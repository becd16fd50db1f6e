//! A synchronous function that is to be stopped where it stands.

use leasehold::{Error, blocking::Client, locked};

#[locked(client = locks, key = "a", on_lost = cancel)]
fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
