//! More permits than there are.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", kind = permits(4, 3))]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
