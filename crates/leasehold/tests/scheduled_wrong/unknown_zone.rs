//! A time zone with a typo.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", zone = "Europe/Berln", name = "nightly", at_most = "2h")]
async fn nightly() {}

fn main() {}
