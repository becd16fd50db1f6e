//! The janitor finishes what callers drop.
//!
//! A request must not be abandoned half-way: its effect would belong to nobody. So work that talks to a store is
//! polled in place by whoever awaits it, and if that caller goes away the rest of it is sent here, to one task
//! per client that polls it to its end. Nothing is spawned and nothing does I/O in a `Drop`; sending to a channel
//! is all, and when the runtime is gone even that is a no-op.

use std::{
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::{runtime::Handle, sync::mpsc};

use super::tally::{Tally, Ticket};
use crate::planted::{Bug, planted};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A client's janitor.
#[derive(Debug)]
pub(crate) struct Janitor {
    orders: mpsc::UnboundedSender<Order>,
    open: Tally,
}

struct Order {
    work: Work,
    ticket: Ticket,
}

impl Janitor {
    pub(crate) fn start(runtime: &Handle) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        runtime.spawn(sweep(inbox));
        Self { orders, open: Tally::default() }
    }

    /// Takes over work whose caller is gone. Never blocks, never panics, with or without a runtime.
    pub(crate) fn carry(&self, work: Work) {
        let order = Order { work, ticket: self.open.ticket() };
        // Without a runtime there is nobody left to do it: leases and sessions end by themselves.
        drop(self.orders.send(order));
    }

    /// Work to be polled in place, and carried on by the janitor if it is dropped before its end.
    pub(crate) fn in_place<T>(&self, future: Pin<Box<dyn Future<Output = T> + Send>>) -> Carried<'_, T>
    where
        T: Send + 'static,
    {
        Carried { future: Some(future), janitor: self }
    }

    /// How much is unfinished.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Completes when nothing is unfinished.
    pub(crate) async fn idle(&self) {
        self.open.none().await;
    }
}

async fn sweep(mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = open.next(), if !open.is_empty() => {}
            order = inbox.recv() => match order {
                Some(Order { work, ticket }) => open.push(async move {
                    // One claim's panic must not end the clean-up of all others.
                    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                        tracing::error!("a clean-up panicked; its lock ends with its lease");
                    }
                    drop(ticket);
                }),
                None => break,
            },
        }
    }
    while let Some(()) = open.next().await {}
}

/// Work polled in place; see [`Janitor::in_place`].
pub(crate) struct Carried<'a, T: Send + 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    janitor: &'a Janitor,
}

impl<T: Send + 'static> Future for Carried<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let future = self.future.as_mut().expect("a future is not polled after it is done");
        let output = std::task::ready!(future.as_mut().poll(context));
        self.future = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Carried<'_, T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take().filter(|_| !planted(Bug::CancelForgets)) {
            self.janitor.carry(Box::pin(async move { drop(future.await) }));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Carried<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried").finish_non_exhaustive()
    }
}
