//! One member, and asking several at once.
//!
//! A request is never dropped half-way. Whoever asked waits for as long as the answer can matter; the rest goes on in a
//! task of its own, and what it brings belongs to whoever asked.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::{
    runtime::Handle,
    time::{Instant, Sleep},
};

use crate::backend::Backend;

/// One of the stores.
#[derive(Debug)]
pub(super) struct Member {
    backend: Arc<dyn Backend>,
    /// It did not answer in time when it was asked last.
    mute: AtomicBool,
}

impl Member {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, mute: AtomicBool::new(false) }
    }

    /// It did not answer in time when it was asked last, and has not answered since.
    pub(super) fn is_mute(&self) -> bool {
        self.mute.load(Ordering::Relaxed)
    }

    pub(super) fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }
}

type Open<T> = Pin<Box<dyn Future<Output = (usize, T)> + Send>>;

/// Requests to several members, side by side, with one end of patience for all.
pub(super) struct Round<T> {
    members: Arc<[Member]>,
    open: FuturesUnordered<Open<T>>,
    /// How many answers of each member are missing.
    unheard: Vec<usize>,
    patience: Pin<Box<Sleep>>,
}

impl<T: Send + 'static> Round<T> {
    pub(super) fn begin(members: Arc<[Member]>, patience: Duration) -> Self {
        let (unheard, patience) = (vec![0; members.len()], Box::pin(tokio::time::sleep(patience)));
        Self { members, open: FuturesUnordered::new(), unheard, patience }
    }

    /// Adds a request to this member. It is sent when the round is next waited for.
    pub(super) fn add(&mut self, at: usize, request: impl Future<Output = T> + Send + 'static) {
        let members = self.members.clone();
        self.unheard[at] += 1;
        self.open.push(Box::pin(async move {
            let answer = request.await;
            members[at].mute.store(false, Ordering::Relaxed);
            (at, answer)
        }));
    }

    /// The next answer; `None` if patience has ended or all are heard.
    pub(super) async fn next(&mut self) -> Option<(usize, T)> {
        let answer = tokio::select! {
            biased;
            answer = self.open.next() => answer,
            () = &mut self.patience => {
                for member in self.silent() {
                    member.mute.store(true, Ordering::Relaxed);
                }
                None
            }
        };
        self.heard(answer)
    }

    /// An answer that is there already.
    pub(super) fn ready(&mut self) -> Option<(usize, T)> {
        let answer = self.open.next().now_or_never().flatten();
        self.heard(answer)
    }

    fn heard(&mut self, answer: Option<(usize, T)>) -> Option<(usize, T)> {
        let answer = answer?;
        self.unheard[answer.0] -= 1;
        Some(answer)
    }

    /// From now on patience ends after this, if not sooner.
    pub(super) fn hurry(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        if end < self.patience.deadline() {
            self.patience.as_mut().reset(end);
        }
    }

    /// How many have not answered.
    pub(super) fn pending(&self) -> usize {
        self.open.len()
    }

    /// Nobody is left who answered last time.
    pub(super) fn waits_for_mute_ones_only(&self) -> bool {
        self.silent().all(Member::is_mute)
    }

    fn silent(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().zip(&self.unheard).filter(|(_, unheard)| **unheard > 0).map(|(member, _)| member)
    }

    /// Lets what is unanswered go on to its end without us.
    pub(super) fn go_on(self) {
        let mut open = self.open;
        if !open.is_empty() {
            Handle::current().spawn(async move { while open.next().await.is_some() {} });
        }
    }
}
