//! A schedule that is not in quotes.

use leasehold::scheduled;

#[scheduled(cron = 2, name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
