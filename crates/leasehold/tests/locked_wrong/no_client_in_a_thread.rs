//! Something that is not a client in a synchronous function.

use leasehold::{Error, locked};

#[locked(client = locks, key = "a")]
fn work(locks: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
