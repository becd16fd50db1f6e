//! Two schedules.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", cron = "0 3 * * *", name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
