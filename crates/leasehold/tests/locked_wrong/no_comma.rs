//! Two options without a comma.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a" wait = "1s")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
