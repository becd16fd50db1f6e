//! A key that is an expression.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = name)]
async fn work(locks: &Client, name: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
