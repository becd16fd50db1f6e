//! How long the store takes for what is asked of it: a histogram for each thing that can be asked.
//!
//! Counting takes no lock and keeps nothing but counts, so a store that is slow is not made slower by being timed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{ErrorKind, Result};

/// What can be asked of the store, as it is called in the label `op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    List,
    Inspect,
    History,
    Break,
    Acquire,
    Renew,
    Release,
    Audit,
    Jobs,
    Job,
    Pause,
    Resume,
    Elections,
    Leader,
    Examine,
}

impl Op {
    pub(crate) const ALL: [Self; 15] = [
        Self::List,
        Self::Inspect,
        Self::History,
        Self::Break,
        Self::Acquire,
        Self::Renew,
        Self::Release,
        Self::Audit,
        Self::Jobs,
        Self::Job,
        Self::Pause,
        Self::Resume,
        Self::Elections,
        Self::Leader,
        Self::Examine,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Inspect => "inspect",
            Self::History => "history",
            Self::Break => "break",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Audit => "audit",
            Self::Jobs => "jobs",
            Self::Job => "job",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Elections => "elections",
            Self::Leader => "leader",
            Self::Examine => "examine",
        }
    }
}

/// The upper ends of the buckets, in milliseconds; one more takes what is longer.
const ENDS: [u64; 9] = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];

/// The times of everything that was asked. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Arc<[Histogram; Op::ALL.len()]>);

/// How many questions took how long.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; ENDS.len() + 1],
    nanos: AtomicU64,
}

impl Times {
    /// Does it, and counts how long that took. Whoever goes away before the answer has waited until then; what was refused
    /// before the store was asked is not counted.
    pub(crate) async fn time<T>(&self, op: Op, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut timing = Timing { histogram: Some(self.of(op)), begun: Instant::now() };
        let answer = work.await;
        if answer.as_ref().is_err_and(|error| was_not_asked(error.kind())) {
            timing.histogram = None;
        }
        answer
    }

    pub(crate) fn of(&self, op: Op) -> &Histogram {
        &self.0[op as usize]
    }
}

impl Histogram {
    /// For each bucket its upper end in seconds, and how many took no longer.
    pub(crate) fn at_most(&self) -> impl Iterator<Item = (f64, u64)> {
        let ends = ENDS.iter().map(|end| Duration::from_millis(*end).as_secs_f64()).chain([f64::INFINITY]);
        ends.zip(&self.buckets).scan(0, |sum, (end, bucket)| {
            *sum += bucket.load(Ordering::Relaxed);
            Some((end, *sum))
        })
    }

    /// All times together.
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn add(&self, took: Duration) {
        let bucket = ENDS.iter().position(|end| took <= Duration::from_millis(*end)).unwrap_or(ENDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(took.as_nanos().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A question on its way.
struct Timing<'a> {
    histogram: Option<&'a Histogram>,
    begun: Instant,
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        if let Some(histogram) = self.histogram {
            histogram.add(self.begun.elapsed());
        }
    }
}

/// Refused by this side: it says nothing of the store.
fn was_not_asked(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Config | ErrorKind::Unsupported | ErrorKind::Closed)
}

#[cfg(test)]
mod tests {
    use leasehold::{Error, Operation};

    use super::*;

    fn counts(times: &Times, op: Op) -> Vec<u64> {
        times.of(op).at_most().map(|(_, count)| count).collect()
    }

    #[test]
    fn each_thing_asked_has_a_place_of_its_own() {
        for (place, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, place, "{op:?}");
        }
    }

    #[test]
    fn a_time_is_in_every_bucket_that_it_fits() {
        let times = Times::default();
        for millis in [1, 2, 50, 20_000] {
            times.of(Op::Audit).add(Duration::from_millis(millis));
        }
        assert_eq!(counts(&times, Op::Audit), [1, 2, 2, 2, 3, 3, 3, 3, 3, 4]);
        assert_eq!(times.of(Op::Audit).sum(), Duration::from_millis(20_053));
        assert_eq!(counts(&times, Op::Break), [0; ENDS.len() + 1]);
    }

    #[tokio::test]
    async fn failures_and_those_who_go_away_count_and_what_was_never_asked_does_not() {
        let times = Times::default();
        let failed = |kind| async move { Err::<(), _>(Error::new(kind, Operation::Inspect, "for a test")) };
        let all = |times: &Times| counts(times, Op::List).last().copied();
        for kind in [ErrorKind::Config, ErrorKind::Unsupported, ErrorKind::Closed] {
            times.time(Op::List, failed(kind)).await.unwrap_err();
        }
        assert_eq!(all(&times), Some(0));
        for kind in [ErrorKind::Unavailable, ErrorKind::Busy, ErrorKind::Lost] {
            times.time(Op::List, failed(kind)).await.unwrap_err();
        }
        assert_eq!(all(&times), Some(3));
        let mut waits = Box::pin(times.time(Op::List, std::future::pending::<Result<()>>()));
        assert!(futures_util::poll!(&mut waits).is_pending());
        assert_eq!(all(&times), Some(3), "it is still on its way");
        drop(waits);
        assert_eq!(all(&times), Some(4));
    }
}
