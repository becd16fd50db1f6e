//! A text that is not said what it is.

use leasehold::scheduled;

#[scheduled("0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
