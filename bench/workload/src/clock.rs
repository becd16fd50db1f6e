//! Clocks that two processes share, and what the operating system counts of one.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on a clock that all processes of this machine share.
pub(crate) fn shared_nanos() -> u128 {
    read(ClockId::Monotonic).as_nanos()
}

/// Processor time of this process in seconds, all of its threads together.
pub fn processor_time() -> f64 {
    read(ClockId::ProcessCPUTime).as_secs_f64()
}

/// Memory of this process that is in use, in bytes.
pub fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let size = rustix::param::page_size() as u64;
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * size
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}
