//! Something that is not a client.

use leasehold::{Error, locked};

struct Shop {
    locks: String,
}

impl Shop {
    #[locked(client = self.locks, key = "a")]
    async fn open(&self) -> Result<(), Error> {
        Ok(())
    }
}

fn main() {}
