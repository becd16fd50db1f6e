//! Nobody is in the way: each task acquires and releases a lock of its own, over and over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{Ask, Conversation, Lock, Peer, Said, processor_time, warm};

/// Before anything is measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// While allocations are counted, which costs time and so comes after what is timed.
const COUNTING: Duration = Duration::from_millis(200);

/// A library that hangs is left behind.
const PATIENCE: Duration = Duration::from_secs(5);

/// Latencies that all tasks together keep.
const KEPT: usize = 2_000_000;

/// A cache line of its own, so that tasks do not slow each other down by counting.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicU64);

#[derive(Default)]
struct Shared {
    measuring: AtomicBool,
    over: AtomicBool,
    errors: AtomicU64,
    done: Vec<Count>,
}

impl Shared {
    fn done(&self) -> u64 {
        self.done.iter().map(|count| count.0.load(Relaxed)).sum()
    }
}

pub(crate) async fn run<P: Peer>(peer: &P, ask: &Ask, conversation: &mut Conversation) -> Result<(), String> {
    warm(peer).await?;
    conversation.ready().await?;
    let done = (0..ask.tasks).map(|_| Count::default()).collect();
    let shared = Arc::new(Shared { done, ..Shared::default() });
    let mut tasks = JoinSet::new();
    for task in 0..ask.tasks {
        tasks.spawn(repeat(peer.lock(&format!("bench:{task}")), shared.clone(), task));
    }
    sleep(WARM_UP).await;
    let (before, cpu, began) = (shared.done(), processor_time(), Instant::now());
    shared.measuring.store(true, Relaxed);
    sleep(Duration::from_secs_f64(ask.seconds)).await;
    shared.measuring.store(false, Relaxed);
    let mut said = Said {
        done: shared.done() - before,
        seconds: began.elapsed().as_secs_f64(),
        cpu: processor_time() - cpu,
        ..Said::default()
    };
    said.allocations = allocations::<P>(&shared).await;
    shared.over.store(true, Relaxed);
    said.latencies(collect(&mut tasks).await);
    (said.total, said.errors) = (shared.done(), shared.errors.load(Relaxed));
    conversation.say(&said)
}

async fn repeat(lock: impl Lock, shared: Arc<Shared>, task: usize) -> Vec<Duration> {
    let mut latencies = Vec::with_capacity(KEPT / shared.done.len() + 64);
    let own = &shared.done[task].0;
    while !shared.over.load(Relaxed) {
        let began = Instant::now();
        let done = match lock.acquire().await {
            Ok(held) => lock.release(held).await,
            Err(error) => Err(error),
        };
        if done.is_err() {
            shared.errors.fetch_add(1, Relaxed);
            sleep(Duration::from_millis(1)).await;
            continue;
        }
        own.store(own.load(Relaxed) + 1, Relaxed);
        if shared.measuring.load(Relaxed) && latencies.len() < latencies.capacity() {
            latencies.push(began.elapsed());
        }
    }
    latencies
}

async fn allocations<P: Peer>(shared: &Shared) -> Option<f64> {
    P::count_allocations(false)?;
    let before = shared.done();
    P::count_allocations(true);
    sleep(COUNTING).await;
    let counted = P::count_allocations(false)?;
    let pairs = (shared.done() - before).max(1);
    Some(counted as f64 / pairs as f64)
}

async fn collect(tasks: &mut JoinSet<Vec<Duration>>) -> Vec<Duration> {
    let end = tokio::time::Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while let Ok(Some(Ok(latencies))) = tokio::time::timeout_at(end, tasks.join_next()).await {
        all.extend(latencies);
    }
    all
}
