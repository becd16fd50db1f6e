//! An error that knows nothing of locks.

use leasehold::{Client, locked};

enum ShopError {
    SoldOut,
}

#[locked(client = locks, key = "a")]
async fn work(locks: &Client) -> Result<(), ShopError> {
    Err(ShopError::SoldOut)
}

fn main() {}
