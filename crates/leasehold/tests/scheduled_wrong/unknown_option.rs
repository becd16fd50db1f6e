//! An option with a typo.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h", atleast = "5m")]
async fn nightly() {}

fn main() {}
