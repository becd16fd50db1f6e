//! Something that is not a function.

use leasehold::locked;

#[locked(key = "a")]
struct Shop;

fn main() {}
