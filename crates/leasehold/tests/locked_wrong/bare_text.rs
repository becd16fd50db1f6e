//! A text that does not say what it is.

use leasehold::{Client, Error, locked};

#[locked("order", client = locks)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
