//! An option that says nothing.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h", jitter)]
async fn nightly() {}

fn main() {}
