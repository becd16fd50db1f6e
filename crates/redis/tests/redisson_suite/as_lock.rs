//! What Redisson tests of every kind of lock in the same words.

use leasehold_core::{
    ErrorKind, Outcome, Owner, State,
    backend::{BreakOutcome, Loss},
    time::Clock,
};
use tokio::task::JoinSet;

use crate::{
    common::eventually,
    stage::{Counter, LONG, Make, SHORT, Stage, wait},
};

pub(crate) async fn test_try_lock_wait(stage: &mut Stage, make: Make) {
    let _held = make(&stage.theirs, "n").acquire().await.unwrap();
    let clock = Clock::boot();
    let began = clock.now();
    assert!(make(&stage.ours, "n").wait(SHORT).try_acquire().await.unwrap().is_none());
    assert!(began.until(clock.now()) >= SHORT, "it gave up too early");
    assert_eq!(stage.ours.stats().waiting, 0);
}

pub(crate) async fn test_force_unlock(stage: &mut Stage, make: Make) {
    let guard = make(&stage.ours, "n").ttl(SHORT).acquire().await.unwrap();
    let waiting = wait(&make(&stage.theirs, "n").ttl(LONG));
    eventually(async || !stage.channels().await.is_empty()).await;
    let broken = stage.theirs.break_hold("n", guard.id(), "it hangs").await.unwrap();
    assert_eq!(broken, BreakOutcome::Broken);
    let next = waiting.await.unwrap();
    assert!(matches!(guard.lost().await, Loss::Broken(_)));
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
    assert!(!stage.is_locked("n").await);
    assert!(make(&stage.ours, "n").try_acquire().await.unwrap().is_some());
}

pub(crate) async fn test_expire(stage: &mut Stage, make: Make) {
    let guard = make(&stage.ours, "n").ttl(SHORT).no_renew().acquire().await.unwrap();
    let next = make(&stage.theirs, "n").acquire().await.unwrap();
    assert_eq!(guard.state(), State::Lost, "two hold it");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(stage.count("n", next.id()).await, 1, "the old holder released the new one's lock");
    next.release().await.unwrap();
}

pub(crate) async fn test_auto_expire(stage: &mut Stage, make: Make) {
    stage.dies(async move |client| make(client, "n").ttl(SHORT).acquire().await.unwrap()).await;
    assert!(stage.is_locked("n").await);
    make(&stage.ours, "n").acquire().await.unwrap().release().await.unwrap();
    assert!(!stage.is_locked("n").await);
    // A client that ends in order does not let anybody wait.
    let ending = stage.redis.client().await;
    let guard = make(&ending, "n").ttl(LONG).acquire().await.unwrap();
    ending.shutdown("5s").await.unwrap();
    assert_eq!(guard.lost().await, Loss::Shutdown);
    assert!(make(&stage.ours, "n").try_acquire().await.unwrap().is_some());
}

pub(crate) async fn test_get_hold_count(stage: &mut Stage, make: Make) {
    let me = Owner::new();
    let lock = make(&stage.ours, "n").owner(&me);
    assert!(!stage.is_locked("n").await);
    let guard = lock.acquire().await.unwrap();
    let id = guard.id();
    assert_eq!(stage.count("n", id).await, 1);
    guard.release().await.unwrap();
    assert_eq!(stage.count("n", id).await, 0);
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    let id = outer.id();
    assert_eq!((stage.count("n", id).await, outer.fence()), (2, inner.fence()));
    inner.release().await.unwrap();
    assert_eq!(stage.count("n", id).await, 1);
    outer.release().await.unwrap();
    assert_eq!(stage.count("n", id).await, 0);
}

pub(crate) async fn test_is_held_by_current_thread_other_thread(stage: &mut Stage, make: Make) {
    let (me, other) = (Owner::new(), Owner::new());
    let guard = make(&stage.ours, "n").owner(&me).acquire().await.unwrap();
    if let Outcome::Held(also) = make(&stage.ours, "n").owner(&other).attempt().await.unwrap() {
        assert_ne!(also.id(), guard.id(), "readers share, but each holds for itself");
        also.release().await.unwrap();
    }
    assert_eq!(stage.count("n", guard.id()).await, 1);
    guard.release().await.unwrap();
    assert!(!stage.is_locked("n").await);
}

pub(crate) async fn test_is_held_by_current_thread(stage: &mut Stage, make: Make) {
    assert!(!stage.is_locked("n").await);
    let guard = make(&stage.ours, "n").acquire().await.unwrap();
    guard.check().unwrap();
    let id = guard.id();
    assert_eq!((guard.state(), stage.count("n", id).await), (State::Held, 1));
    guard.release().await.unwrap();
    assert_eq!(stage.count("n", id).await, 0);
}

pub(crate) async fn test_is_locked_other_thread(stage: &mut Stage, make: Make) {
    let guard = make(&stage.ours, "n").acquire().await.unwrap();
    assert!(stage.theirs.inspect("n").await.unwrap().is_some());
    guard.release().await.unwrap();
    assert!(stage.theirs.inspect("n").await.unwrap().is_none());
}

pub(crate) async fn test_is_locked(stage: &mut Stage, make: Make) {
    assert!(stage.ours.inspect("n").await.unwrap().is_none());
    let guard = make(&stage.ours, "n").acquire().await.unwrap();
    assert_eq!(stage.ours.inspect("n").await.unwrap().unwrap().holders.len(), 1);
    guard.release().await.unwrap();
    assert!(stage.ours.inspect("n").await.unwrap().is_none());
}

pub(crate) async fn test_unlock_fail(stage: &mut Stage, make: Make) {
    let spent = make(&stage.theirs, "n").ticket().await.unwrap();
    stage.theirs.release_ticket(&spent).await.unwrap();
    let guard = make(&stage.ours, "n").acquire().await.unwrap();
    let error = stage.theirs.release_ticket(&spent).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert_eq!(stage.count("n", guard.id()).await, 1);
    guard.release().await.unwrap();
}

pub(crate) async fn test_lock_unlock(stage: &mut Stage, make: Make) {
    let lock = make(&stage.ours, "n");
    let mut last = 0;
    for _ in 0..2 {
        let guard = lock.acquire().await.unwrap();
        assert!(guard.fence() > last);
        last = guard.fence();
        guard.release().await.unwrap();
        assert!(!stage.is_locked("n").await);
    }
}

pub(crate) async fn test_reentrancy(stage: &mut Stage, make: Make) {
    let me = Owner::new();
    let (mine, other) = (make(&stage.ours, "n").owner(&me), make(&stage.theirs, "n"));
    let outer = mine.try_acquire().await.unwrap().unwrap();
    let inner = mine.try_acquire().await.unwrap().unwrap();
    inner.release().await.unwrap();
    assert!(other.try_acquire().await.unwrap().is_none());
    outer.release().await.unwrap();
    assert!(other.try_acquire().await.unwrap().is_some());
}

pub(crate) async fn test_concurrency_single_instance(stage: &mut Stage, make: Make) {
    counted(std::slice::from_ref(&stage.ours), make, 15, 1).await;
}

pub(crate) async fn test_concurrency_loop_multi_instance(stage: &mut Stage, make: Make) {
    counted(&stage.clients(8).await, make, 8, 10).await;
}

pub(crate) async fn test_concurrency_multi_instance(stage: &mut Stage, make: Make) {
    counted(&stage.clients(40).await, make, 40, 1).await;
}

/// So many tasks, spread over these clients, add to a counter so often.
async fn counted(clients: &[leasehold_core::Client], make: Make, tasks: usize, times: u64) {
    let counter = Counter::default();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (lock, counter) = (make(&clients[task % clients.len()], "n"), counter.clone());
        running.spawn(async move {
            for _ in 0..times {
                counter.add_under(&lock).await;
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.get(), tasks as u64 * times);
    for client in clients {
        client.shutdown("5s").await.unwrap();
    }
}
