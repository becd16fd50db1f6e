//! A brace that is never closed.

use leasehold::{Client, Error, locked};

struct Order {
    id: u32,
}

#[locked(client = locks, key = "order:{order.id")]
async fn work(locks: &Client, order: &Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
