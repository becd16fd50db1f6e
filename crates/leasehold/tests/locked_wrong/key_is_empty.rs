//! A key without a letter.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
