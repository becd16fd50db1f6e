//! A job whose name is nothing.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "", at_most = "2h")]
async fn nightly() {}

fn main() {}
