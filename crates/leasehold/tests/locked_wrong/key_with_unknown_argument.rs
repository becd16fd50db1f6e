//! A typo in the name of an argument.

use leasehold::{Client, Error, locked};

struct Order {
    id: u32,
}

#[locked(client = locks, key = "order:{oder.id}")]
async fn work(locks: &Client, order: &Order) -> Result<(), Error> {
    Ok(())
}

fn main() {}
