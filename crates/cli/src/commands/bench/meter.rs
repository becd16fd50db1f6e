//! What happened in a scenario: how often, how long each took, what went wrong.
//!
//! Latencies go into HDR histograms, so that the slowest one in ten thousand is as exact as the middle one. Tasks share a
//! few of them: one for each task would be larger than all else.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use leasehold::{Error, ErrorKind};

/// How many histograms tasks share.
const SHARDS: usize = 8;

/// The longest latency that is told apart, in nanoseconds: an hour.
const LONGEST: u64 = 3600 * 1_000_000_000;

/// Counts what happens.
#[derive(Debug)]
pub(crate) struct Meter {
    shards: Vec<Mutex<Histogram<u64>>>,
    done: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    first: Mutex<Firsts>,
}

/// The first of each thing that should not have happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firsts {
    /// An error.
    pub(crate) error: Option<String>,
    /// A proof that two held what only one may hold.
    pub(crate) wrong: Option<String>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are sound");
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(histogram())).collect(),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            first: Mutex::default(),
        }
    }

    /// One more operation of a task, which took this long.
    pub(crate) fn took(&self, task: usize, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(LONGEST);
        lock(&self.shards[task % SHARDS]).saturating_record(nanos.max(1));
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// One failed.
    pub(crate) fn failed(&self, error: &Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if error.kind() == ErrorKind::Lost {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        lock(&self.first).error.get_or_insert_with(|| error.to_string());
    }

    /// Locks did not do what they are for.
    pub(crate) fn wrong(&self, what: impl FnOnce() -> String) {
        lock(&self.first).wrong.get_or_insert_with(what);
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Failures that are losses: whoever loses a lock is told, and what it guards may be no more its own.
    pub(crate) fn losses(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn firsts(&self) -> Firsts {
        lock(&self.first).clone()
    }

    /// All latencies so far.
    pub(crate) fn latencies(&self) -> Histogram<u64> {
        let mut shards = self.shards.iter();
        let mut all = shards.next().map(|shard| lock(shard).clone()).expect("there are shards");
        for shard in shards {
            all.add(&*lock(shard)).expect("all shards have the same bounds");
        }
        all
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use leasehold::Operation;

    use super::*;

    #[test]
    fn tasks_share_histograms_and_nothing_is_lost() {
        let meter = Meter::new();
        for task in 0..100 {
            meter.took(task, Duration::from_micros(task as u64 + 1));
        }
        meter.took(0, Duration::from_secs(7200));
        let all = meter.latencies();
        assert_eq!((all.len(), meter.done()), (101, 101));
        assert!(all.max() >= LONGEST, "too long is the longest");
    }

    #[test]
    fn losses_are_failures_of_their_own() {
        let meter = Meter::new();
        meter.failed(&Error::new(ErrorKind::Unavailable, Operation::Acquire, "first"));
        meter.failed(&Error::new(ErrorKind::Lost, Operation::Acquire, "second"));
        assert_eq!((meter.failures(), meter.losses()), (2, 1));
        assert!(meter.firsts().error.is_some_and(|error| error.contains("first")));
    }
}
