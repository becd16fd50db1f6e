//! A function with a parameter in angle brackets.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly<T: Clone>(it: T) {}

fn main() {}
