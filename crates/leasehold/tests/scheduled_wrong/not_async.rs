//! A function that blocks.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
fn nightly() {}

fn main() {}
