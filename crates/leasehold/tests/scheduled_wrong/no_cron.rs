//! A job that does not say when.

use leasehold::scheduled;

#[scheduled(name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
