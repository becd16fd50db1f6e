//! A function that returns before its work begins.

use std::pin::Pin;

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a")]
fn work(locks: &Client) -> Pin<Box<dyn Future<Output = Result<(), Error>>>> {
    Box::pin(async { Ok(()) })
}

fn main() {}
