//! February has no 30th.

use leasehold::scheduled;

#[scheduled(cron = "0 2 30 2 *", name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
