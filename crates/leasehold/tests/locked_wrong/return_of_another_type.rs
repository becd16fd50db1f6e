//! A value of another type than the function returns.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_busy = return(0))]
async fn work(locks: &Client) -> Result<u32, Error> {
    Ok(1)
}

fn main() {}
