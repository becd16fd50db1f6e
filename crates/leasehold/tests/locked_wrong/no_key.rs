//! A client, but no key.

use leasehold::{Client, Error, locked};

#[locked(client = locks)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
