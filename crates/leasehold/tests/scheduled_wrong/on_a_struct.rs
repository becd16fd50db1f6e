//! Not a function.

use leasehold::scheduled;

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
struct Nightly;

fn main() {}
