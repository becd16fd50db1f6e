//! The run after another argument.

use leasehold::{Run, scheduled};

#[scheduled(cron = "0 2 * * *", name = "nightly", at_most = "2h")]
async fn nightly(db: String, run: &Run) {}

fn main() {}
