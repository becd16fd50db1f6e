//! A job that may take for ever.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly")]
async fn nightly() {}

fn main() {}
