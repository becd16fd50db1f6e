//! A result that nobody takes.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly() -> u32 {
    7
}

fn main() {}
