//! An option with a typo.

use leasehold::{Client, Error, locked};

#[locked(client = locks, key = "a", on_bussy = skip)]
async fn work(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
