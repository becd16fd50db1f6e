//! A limit that nothing can be done in.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", max_hold = "1ms")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
