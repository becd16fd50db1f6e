//! A schedule with a field too few.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * *", name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
