//! A function that cannot fail.

use leasehold::{Client, locked};

#[locked(client = locks, key = "a")]
async fn work(locks: &Client) -> Option<u32> {
    Some(1)
}

fn main() {}
