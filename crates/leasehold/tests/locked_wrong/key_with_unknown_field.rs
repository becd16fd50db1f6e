//! A typo in the name of a field.

use leasehold::{Client, Error, locked};

struct Order {
    id: u32,
}

#[locked(client = locks, key = "order:{order.idd}")]
async fn work(locks: &Client, order: &Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
