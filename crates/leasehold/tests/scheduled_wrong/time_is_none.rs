//! A text that is no length of time.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h", at_least = "a while")]
async fn nightly() {}

fn main() {}
