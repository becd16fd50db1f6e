//! Removal of what nobody uses: rows of names that were given back, and rows of holders that died.
//!
//! It happens in the background when a store is opened, which takes care of what those left who are gone; and some time
//! after rows were made or left by their last holder, once they can be due. So what is left over never exceeds what was made or
//! left within about half an hour, and what those left who have not been followed by anybody.
//!
//! To fail is no harm: the next will do it.

use std::{sync::Arc, time::Duration};

use leasehold_core::Retry;
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{Failure, Tried, database::GRAIN};

/// How long after a row was made or left somebody looks: by then it is due, unless it is in use. It may be due one grain later
/// than it need be, since a moment that is hardly later is kept.
const LATER: Duration = Duration::from_micros(2 * GRAIN + GRAIN / 4);

/// How often others may be in the way before it is left to the next.
const TRIES: u32 = 16;

/// Between two of these, others get on: ever longer, since a server that tidies its tables by itself may need seconds.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long one sweep may take altogether.
const MOST: Duration = Duration::from_secs(60);

/// The task that sweeps. Ends when it is stopped or dropped.
#[derive(Debug)]
pub(super) struct Sweeper {
    made: Arc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Begins to call `sweep`, which removes some and says how many.
    pub(super) fn start<F>(sweep: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Tried<u64>> + Send,
    {
        let made = Arc::new(Notify::new());
        let rows = made.clone();
        let task = tokio::runtime::Handle::try_current().ok().map(|runtime| {
            runtime.spawn(async move {
                loop {
                    // Until it has taken too long: what is left then is left to the next.
                    let _ = timeout(MOST, all(&sweep)).await;
                    rows.notified().await;
                    sleep(LATER).await;
                }
            })
        });
        Self { made, task }
    }

    /// A row was made, or nobody is in it any more: somebody has to remove it in the end.
    pub(super) fn row_left(&self) {
        self.made.notify_one();
    }

    pub(super) fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sweeps until nothing is left that is due.
async fn all<F: Future<Output = Tried<u64>>>(sweep: impl Fn() -> F) {
    let mut failures = 0;
    while failures < TRIES {
        match sweep().await {
            Ok(0) => return,
            Ok(_) => {}
            Err(Failure::GaveWay(_)) => failures += 1,
            Err(Failure::Final(error)) => {
                tracing::debug!(%error, "rows were not swept");
                if error.retry() == Retry::No {
                    return;
                }
                failures += 1;
            }
        }
        sleep(LONGEST_PAUSE.min(PAUSE * (1 << failures))).await;
    }
    tracing::debug!("rows were not swept: others were in the way, or the server was");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use leasehold_core::ErrorKind;

    use super::*;

    fn counting(removed: u64) -> (Sweeper, Arc<AtomicU64>) {
        let (count, left) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(removed));
        let counted = count.clone();
        let sweeper = Sweeper::start(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let some = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            async move { Ok(u64::from(some.is_ok())) }
        });
        (sweeper, count)
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_store_sweeps_at_once_until_nothing_is_left() {
        let (_sweeper, count) = counting(3);
        sleep(LATER * 5).await;
        assert_eq!(
            count.load(Ordering::Relaxed),
            4,
            "three that removed, one that found nothing, and no more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn rows_that_were_made_are_swept_later_though_no_more_are_made() {
        let (sweeper, count) = counting(0);
        sleep(LATER).await;
        (0..1000).for_each(|_| sweeper.row_left());
        sleep(LATER / 2).await;
        assert_eq!(count.load(Ordering::Relaxed), 1, "they cannot be due yet");
        sleep(LATER * 5).await;
        assert_eq!(count.load(Ordering::Relaxed), 3, "after the first, and once more after all the others");
    }

    /// How often a sweep is tried by a store that is opened, of which the first two fail so.
    async fn tries_after_two(kind: ErrorKind) -> u64 {
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        let _sweeper = Sweeper::start(move || {
            let failed = counted.fetch_add(1, Ordering::Relaxed) < 2;
            let error = leasehold_core::Error::new(kind, leasehold_core::Operation::Inspect, "not now");
            async move { if failed { Err(Failure::Final(error)) } else { Ok(0) } }
        });
        sleep(LATER).await;
        count.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_could_not_is_asked_again_and_one_that_will_not_is_left_alone() {
        assert_eq!(tries_after_two(ErrorKind::Unavailable).await, 3);
        assert_eq!(tries_after_two(ErrorKind::Denied).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_always_in_the_way_is_left_alone() {
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        let _sweeper = Sweeper::start(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let error = leasehold_core::Error::config(leasehold_core::Operation::Inspect, "in the way");
            async move { Err(Failure::GaveWay(error)) }
        });
        sleep(LATER).await;
        assert_eq!(count.load(Ordering::Relaxed), u64::from(TRIES));
    }
}
