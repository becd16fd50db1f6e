//! A way to lose that there is not.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_lost = ignore)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
