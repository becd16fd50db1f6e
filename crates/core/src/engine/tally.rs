//! Counting what is open, from its begin to its end, also when a runtime drops it unfinished.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// A count of open things.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    open: AtomicUsize,
    none: Notify,
}

/// Counts as one open thing until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Tally);

impl Tally {
    /// Begins one more.
    pub(super) fn ticket(&self) -> Ticket {
        self.0.open.fetch_add(1, Ordering::SeqCst);
        Ticket(self.clone())
    }

    /// Begins one more, unless so many are open already.
    pub(super) fn ticket_within(&self, most: usize) -> Option<Ticket> {
        let more = |open| (open < most).then_some(open + 1);
        let begun = self.0.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        begun.ok().map(|_| Ticket(self.clone()))
    }

    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.0.open.load(Ordering::SeqCst)
    }

    /// Completes when none is open.
    pub(super) async fn none(&self) {
        loop {
            let none = self.0.none.notified();
            if self.len() == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let count = &self.0.0;
        if count.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            count.none.notify_waiters();
        }
    }
}
