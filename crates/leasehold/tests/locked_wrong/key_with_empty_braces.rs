//! Braces with nothing in them.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "order:{}")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
