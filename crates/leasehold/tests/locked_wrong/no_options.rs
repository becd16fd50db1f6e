//! The key is left out.

use leasehold::{Client, Error, locked};

#[locked]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
