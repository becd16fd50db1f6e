//! A function of a trait that has no body.

use leasehold::{Error, locked};

trait Shop {
    #[locked(key = "a")]
    async fn open(&self) -> Result<(), Error>;
}

fn main() {}
