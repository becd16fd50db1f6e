//! The one clock of a run: this machine's boot clock, which all its processes share.
//!
//! Histories could be stamped with the monotonic clock as well; the boot clock is taken because holders' deadlines are
//! on it, and the two differ by the time the machine slept.

use std::time::Duration;

/// Nanoseconds on the clock of every history.
pub fn now() -> u64 {
    leasehold::time::Clock::boot().now().as_nanos()
}

/// Lets the nemesis wait. It has a thread of its own and no runtime.
#[expect(clippy::disallowed_methods, reason = "no executor runs on this thread")]
pub fn rest(duration: Duration) {
    std::thread::sleep(duration);
}
