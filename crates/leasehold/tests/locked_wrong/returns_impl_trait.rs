//! A type that has no name.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a")]
async fn work(locks: &Client) -> Result<impl std::fmt::Display, Error> {
    Ok(1)
}

fn main() {}
