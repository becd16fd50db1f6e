//! What the tasks of a scenario share: clients, limits, the meter, and when to stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{Client, Error, Guard, Lock};
use tokio::task::JoinSet;

use super::{meter::Meter, witness::Witness};

/// Every name begins with this, and this is the name that keeps two runs apart.
pub(crate) const NAME: &str = "leasehold-bench";

/// After an error, so that a store that is down is not asked all the time.
const RECOVERY: Duration = Duration::from_millis(20);

/// One run of one scenario.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) clients: Vec<Client>,
    pub(crate) tasks: usize,
    pub(crate) time: Duration,
    pub(crate) terms: Terms,
    pub(crate) meter: Meter,
    over: AtomicBool,
}

/// How locks are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) ttl: Option<Duration>,
    pub(crate) cohort: u32,
    pub(crate) plain: bool,
}

impl Stage {
    pub(crate) fn new(clients: &[Client], tasks: usize, time: Duration, terms: Terms) -> Arc<Self> {
        let (clients, over) = (clients.to_vec(), AtomicBool::new(false));
        Arc::new(Self { clients, tasks, time, terms, meter: Meter::new(), over })
    }

    /// The client of a task: tasks are dealt out among them.
    pub(crate) fn client(&self, task: usize) -> &Client {
        &self.clients[task % self.clients.len()]
    }

    /// A lock on these terms.
    pub(crate) fn lock(&self, task: usize, name: &str) -> Lock {
        let lock = self.client(task).lock(&full(name)).cohort(self.terms.cohort);
        self.leased(if self.terms.plain { lock.plain() } else { lock })
    }

    /// With the lease of these terms.
    pub(crate) fn leased(&self, lock: Lock) -> Lock {
        match self.terms.ttl {
            Some(ttl) => lock.ttl(ttl),
            None => lock,
        }
    }

    /// Whether the time is over. Every task does its work once, however short that is.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Does this in as many tasks as there are, until all have ended. Those that look at the time end when it is over.
    pub(crate) async fn crowd<F>(self: &Arc<Self>, work: impl Fn(Arc<Self>, usize) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut crowd = JoinSet::new();
        for task in 0..self.tasks {
            crowd.spawn(work(self.clone(), task));
        }
        let timer = tokio::time::sleep(self.time);
        tokio::pin!(timer);
        loop {
            tokio::select! {
                () = &mut timer, if !self.is_over() => self.over.store(true, Ordering::Relaxed),
                ended = crowd.join_next() => match ended {
                    Some(ended) => self.ended(ended.err()),
                    None => return,
                },
            }
        }
    }

    /// A task that panicked proves nothing about the store, and its numbers are worth nothing.
    pub(crate) fn ended(&self, trouble: Option<tokio::task::JoinError>) {
        if let Some(trouble) = trouble.filter(tokio::task::JoinError::is_panic) {
            self.meter.wrong(|| format!("a task of the benchmark panicked: {trouble}"));
        }
    }

    /// Waits for the lock, which is timed, does this under it and gives it back.
    pub(crate) async fn under<F>(&self, task: usize, lock: &Lock, work: impl FnOnce(u64) -> F)
    where
        F: Future<Output = Result<(), String>>,
    {
        let begun = Instant::now();
        match lock.acquire().await {
            Ok(guard) => {
                self.meter.took(task, begun.elapsed());
                self.inside(guard, work).await;
            }
            Err(error) => self.trouble(&error).await,
        }
    }

    /// Does this under a guard. What was done under a lock that is lost proves nothing: its holder has been told.
    pub(crate) async fn inside<F>(&self, guard: Guard, work: impl FnOnce(u64) -> F)
    where
        F: Future<Output = Result<(), String>>,
    {
        let done = work(guard.fence()).await;
        if let Err(error) = guard.check() {
            return self.trouble(&error).await;
        }
        if let Err(what) = done {
            self.meter.wrong(|| what);
        }
        if let Err(error) = guard.release().await {
            self.trouble(&error).await;
        }
    }

    /// Takes note of an error, and lets the store recover.
    pub(crate) async fn trouble(&self, error: &Error) {
        self.meter.failed(error);
        tokio::time::sleep(RECOVERY).await;
    }

    /// Takes note of a sum that is wrong, unless a lock was lost: then it may be.
    pub(crate) fn judge(&self, witness: &Witness) {
        if let Err(what) = witness.sum()
            && self.meter.losses() == 0
        {
            self.meter.wrong(|| what);
        }
    }
}

/// A name of ours.
pub(crate) fn full(name: &str) -> String {
    format!("{NAME}:{name}")
}
