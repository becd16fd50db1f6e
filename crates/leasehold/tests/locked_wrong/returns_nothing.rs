//! A function that returns nothing.

use leasehold::{Client, locked};

#[locked(client = locks, key = "a")]
async fn work(locks: &Client) {}

fn main() {}
