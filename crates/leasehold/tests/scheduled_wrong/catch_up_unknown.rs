//! A policy that there is not.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h", catch_up = some)]
async fn nightly() {}

fn main() {}
