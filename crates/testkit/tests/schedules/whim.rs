//! Futures that are polled as the dice say: late, in between, and not always to their end.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use leasehold_testkit::scripted::Dice;

/// Beyond what any request takes, its withdrawal included, unless the store never answers.
const LONG: Duration = Duration::from_secs(60);

/// How a worker polls.
pub(crate) struct Whim {
    pub(crate) dice: Dice,
    /// The store may never answer: then nobody need wait to the end.
    pub(crate) may_be_mute: bool,
}

impl Whim {
    /// Polls a future to its end, letting others run first now and then. `None` if the store never answers.
    pub(crate) async fn restless<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let dice = self.dice.fork();
        self.within(polled(dice, None, future)).await
    }

    /// Polls a future, and drops it after some polls if the dice say so. `None` if it was not done by then.
    pub(crate) async fn fickle<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let polls = self.dice.chance(30).then(|| self.dice.below(12));
        let dice = self.dice.fork();
        self.within(polled(dice, polls, future)).await
    }

    async fn within<T>(&self, polled: impl Future<Output = Option<T>>) -> Option<T> {
        let ended = tokio::time::timeout(LONG, polled).await;
        assert!(self.may_be_mute || ended.is_ok(), "not answered within {LONG:?} by a store that answers");
        ended.ok().flatten()
    }
}

async fn polled<F: Future>(mut dice: Dice, mut left: Option<u64>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(move |context| {
        if left == Some(0) {
            return Poll::Ready(None);
        }
        if dice.chance(20) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        left = left.map(|left| left - 1);
        // Polled again without being woken, as a `select!` around it does. One that is to be dropped must be polled
        // often enough; any other must wait at some time, or virtual time would stand still.
        if left == Some(0) || (left.is_some() && dice.chance(50)) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}
