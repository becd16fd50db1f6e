//! An argument that only one run could have.

use leasehold::scheduled;

struct Pool;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly(db: Pool) {}

fn main() {}
