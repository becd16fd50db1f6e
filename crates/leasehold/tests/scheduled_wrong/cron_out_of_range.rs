//! A day has no hour 25.

use leasehold::scheduled;

#[scheduled(cron = "0 25 * * *", name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
