//! A value that has no text.

use leasehold::{Client, Error, locked};

struct Order {
    id: u32,
}

#[locked(client = locks, key = "order:{order}")]
async fn work(locks: &Client, order: &Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
