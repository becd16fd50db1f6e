//! What many cases do: wait until something is so, poll a future so many times, look for what was left behind.

use std::{
    fmt::Debug,
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use leasehold_core::{
    ClaimId, Client, Error, ErrorKind, Guard, Key, Lock, Outcome, Result, Who,
    backend::{Attempt, Backend, Busy, ClaimSpec, Life, LockState, Mode, Shape},
    time::Instant,
};
use tokio::task::JoinSet;

use super::Fixture;
use crate::scripted::Script;

/// The error of something that must fail.
#[track_caller]
pub(super) fn refusal<T: Debug>(result: Result<T>) -> Error {
    result.expect_err("this must not succeed")
}

/// The error of a wait that ends without the lock. A store that is slower than our patience is told as that; then the
/// wait is made longer.
pub(super) async fn in_vain<T: Debug>(ask: impl AsyncFn(Duration) -> Result<T>) -> Error {
    let mut wait = Duration::from_millis(30);
    loop {
        let error = refusal(ask(wait).await);
        if error.kind() != ErrorKind::Unavailable {
            return error;
        }
        wait *= 4;
    }
}

/// The busy answer of a lock that somebody else must have.
pub(super) async fn busy(lock: &Lock) -> Busy {
    match lock.attempt().await.unwrap() {
        Outcome::Busy(busy) => busy,
        Outcome::Held(guard) => panic!("{:?} was to be had, with fence {}", guard.name(), guard.fence()),
    }
}

/// Takes a lock that must be free.
pub(super) async fn take(lock: &Lock) -> Guard {
    let taken = lock.try_acquire().await.unwrap();
    taken.unwrap_or_else(|| panic!("{:?} was not to be had", lock.name()))
}

/// Whether a lock can be had; if so it is given back.
pub(super) async fn is_free(lock: &Lock) -> bool {
    match lock.try_acquire().await.unwrap() {
        Some(guard) => guard.release().await.is_ok(),
        None => false,
    }
}

/// Everything known of a name, which must be in use.
pub(super) async fn state(client: &Client, name: &str) -> LockState {
    client.inspect(name).await.unwrap().unwrap_or_else(|| panic!("{name:?} is not in use"))
}

/// How many wait for a name.
pub(super) async fn waiters(client: &Client, name: &str) -> usize {
    client.inspect(name).await.unwrap().map_or(0, |state| state.waiters.len())
}

/// Completes when so many are seen to wait for a name. The watchdog ends it if that never comes.
pub(super) async fn until_waiting(client: &Client, name: &str, count: usize) {
    eventually(async || waiters(client, name).await == count).await;
}

/// Completes when something is so. The watchdog ends it if that never comes.
pub(super) async fn eventually(is_so: impl AsyncFn() -> bool) {
    let mut pause = Duration::from_millis(1);
    while !is_so().await {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Measures that those who wait are woken, and do not find out by looking again.
pub(super) struct Stopwatch<'a> {
    fixture: &'a Fixture,
    start: Instant,
}

impl<'a> Stopwatch<'a> {
    pub(super) fn start(fixture: &'a Fixture) -> Self {
        Self { fixture, start: fixture.time().now() }
    }

    /// Virtual time passes only while everybody waits, so a wake-up that is lost costs a whole polling pause and one
    /// that comes costs nothing. On a real clock nothing can be said.
    #[track_caller]
    pub(super) fn was_prompt(self) {
        let passed = self.start.until(self.fixture.time().now());
        let tells = self.fixture.is_virtual() && self.fixture.has_bell();
        assert!(
            !tells || passed < Duration::from_secs(1),
            "{passed:?} of waiting for what had happened already"
        );
    }
}

/// Nothing of a client is left, neither in it nor in the store under this name.
pub(super) async fn settled(client: &Client, name: &str) {
    client.idle().await;
    let stats = client.stats();
    assert_eq!((stats.held, stats.waiting, stats.tidying), (0, 0, 0), "held, waiting, tidying after idle()");
    let left = client.inspect(name).await.unwrap();
    assert!(left.is_none(), "left behind: {left:?}");
}

/// How a future is polled until it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polls {
    /// When it is woken, as an executor does.
    Woken,
    /// Again and again, between any two steps of anybody else.
    Eager,
}

/// Polls a future so many times, then drops it. `None` if it was not done by then.
pub(super) async fn cut_after<F: Future>(count: usize, polls: Polls, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = count;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => {
                if polls == Polls::Eager {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}

/// An acquisition made at the store itself: nobody renews or releases it.
#[derive(Debug)]
pub(super) struct Ghost {
    pub(super) id: ClaimId,
    pub(super) fence: u64,
    /// Kept open: the lease alone is to end the acquisition, also where a store notices that a session has died.
    _session: Arc<dyn Backend>,
}

/// Takes a name for nobody.
pub(super) async fn ghost(fixture: &Fixture, name: &str, mode: Mode, ttl: Duration) -> Ghost {
    let session = fixture.backend(&Script::new()).await;
    let spec = spec(name, mode, ttl);
    match session.claim(spec.clone()).attempt().await.unwrap() {
        Attempt::Granted(grant) => Ghost { id: spec.id, fence: grant.fence, _session: session },
        Attempt::Busy(busy) => panic!("{name:?} was not to be had: {busy}"),
    }
}

/// One acquisition, as a store is asked for it.
pub(super) fn spec(name: &str, mode: Mode, ttl: Duration) -> Arc<ClaimSpec> {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let who = Who::here().with_program("ghost");
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let id = format!("{}:{serial}", who.client).parse().unwrap();
    let key = Key::new("", name).unwrap();
    let (fair, life, who, label) = (false, Life::Session, Arc::new(who), None);
    Arc::new(ClaimSpec {
        id,
        key,
        mode,
        shape: Shape::Lock,
        ttl,
        fair,
        life,
        who,
        label,
        location: None,
        fences: 1,
    })
}

/// So many permits of so many.
pub(super) fn permits(take: u32, of: u32) -> Mode {
    let number = |number| NonZeroU32::new(number).unwrap();
    Mode::Permits { take: number(take), of: number(of) }
}

/// Waits for all tasks, and fails as the first of them failed.
pub(super) async fn joined<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut done = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(output) => done.push(output),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    done
}
