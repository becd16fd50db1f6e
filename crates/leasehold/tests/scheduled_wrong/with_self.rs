//! A method.

use leasehold::scheduled;

struct Shop;

impl Shop {
    #[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
    async fn nightly(&self) {}
}

fn main() {}
