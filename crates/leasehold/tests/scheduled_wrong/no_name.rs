//! A job without a name.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", at_most = "2h")]
async fn nightly() {}

fn main() {}
