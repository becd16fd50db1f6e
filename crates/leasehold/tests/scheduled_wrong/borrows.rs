//! An argument that is borrowed.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly(db: &String) {}

fn main() {}
