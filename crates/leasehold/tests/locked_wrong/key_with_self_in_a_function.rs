//! `self` where there is none.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "order:{self.id}")]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
