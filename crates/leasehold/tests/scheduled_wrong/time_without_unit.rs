//! A number without a unit.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = 2)]
async fn nightly() {}

fn main() {}
