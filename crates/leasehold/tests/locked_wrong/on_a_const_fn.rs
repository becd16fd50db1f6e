//! A function that runs while compiling.

use leasehold::{Error, locked};

#[locked(key = "a")]
const fn work() -> Result<(), Error> {
    Ok(())
}

fn main() {}
