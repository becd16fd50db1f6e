//! An argument without a name.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly((one, other): (u8, u8)) {}

fn main() {}
