//! `RedissonSpinLockTest`: we have no spin lock and need none, so here ours meets one, played on Redisson's layout.
//!
//! A spin lock is the same hash; who waits for it asks again and again, and who gives it back tells nobody. We tell
//! everybody whenever we give back, and look again now and then when nobody tells us.

use std::time::Duration;

use leasehold_core::{ErrorKind, Guard, Outcome, State, backend::BreakOutcome, time::Clock};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use crate::{
    common::{eventually, java, spawn},
    stage::{Counter, LONG, SHORT, Stage, play, wait},
};

/// What a spin lock does to take the name `n`.
const TAKE: &str = "if redis.call('exists', 'n') == 0 or redis.call('hexists', 'n', ARGV[1]) == 1 then \
    redis.call('hincrby', 'n', ARGV[1], 1) redis.call('pexpire', 'n', ARGV[2]) return 1 end return 0";

/// And to give it back: 0 if it is not its own.
const GIVE: &str = "if redis.call('hexists', 'n', ARGV[1]) == 0 then return 0 end \
    if redis.call('hincrby', 'n', ARGV[1], -1) <= 0 then redis.call('del', 'n') end return 1";

/// A thread of Java's with a spin lock.
#[derive(Clone)]
struct Spin {
    bare: MultiplexedConnection,
    id: String,
    lease: Duration,
}

impl Spin {
    fn new(stage: &Stage, lease: Duration) -> Self {
        Self { bare: stage.redis.bare.clone(), id: java(), lease }
    }

    async fn eval(&self, script: &str) -> bool {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(0).arg(&self.id).arg(self.lease.as_millis() as u64);
        command.query_async(&mut self.bare.clone()).await.unwrap()
    }

    async fn try_lock(&self) -> bool {
        self.eval(TAKE).await
    }

    /// Asks, pausing a little longer each time.
    async fn lock(&self) {
        let mut pause = Duration::from_millis(1);
        while !self.try_lock().await {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(128));
        }
    }

    async fn unlock(&self) -> bool {
        self.eval(GIVE).await
    }
}

/// What Java sees of its own hold.
async fn count(stage: &Stage, spin: &Spin) -> u32 {
    stage.raw::<Option<u32>>(&["HGET", "n", &spin.id]).await.unwrap_or(0)
}

/// A lock of ours while Java spins for it.
async fn ours(stage: &Stage) -> Guard {
    stage.ours.lock("n").ttl(LONG).acquire().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_force_unlock() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        spin.lock().await;
        let id = stage.holders("n").await[0].id;
        assert_eq!(stage.ours.break_hold("n", id, "it hangs").await.unwrap(), BreakOutcome::Broken);
        assert!(!spin.unlock().await, "it holds nothing any more");
        ours(stage).await.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire() {
    play(async |stage| {
        let spin = Spin::new(stage, SHORT);
        spin.lock().await;
        let guard = ours(stage).await;
        assert!(!spin.unlock().await, "its lease ended and the lock is ours");
        guard.check().unwrap();
        guard.release().await.unwrap();
        let expiring = stage.ours.lock("n").ttl(SHORT).no_renew().acquire().await.unwrap();
        spin.lock().await;
        assert_eq!(expiring.state(), State::Lost);
        assert_eq!(expiring.release().await.unwrap_err().kind(), ErrorKind::Lost);
        assert!(spin.unlock().await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_auto_expire() {
    play(async |stage| {
        stage.dies(async |client| client.lock("n").ttl(SHORT).acquire().await.unwrap()).await;
        let spin = Spin::new(stage, LONG);
        assert!(!spin.try_lock().await);
        spin.lock().await;
        assert!(spin.unlock().await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_get_hold_count() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        let seen = async || stage.holders("n").await.first().map_or(0, |holder| holder.count);
        assert_eq!(seen().await, 0);
        spin.lock().await;
        assert_eq!(seen().await, 1);
        spin.unlock().await;
        assert_eq!(seen().await, 0);
        spin.lock().await;
        spin.lock().await;
        assert_eq!(seen().await, 2);
        spin.unlock().await;
        assert_eq!(seen().await, 1);
        spin.unlock().await;
        assert_eq!(seen().await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_is_held_by_current_thread_other_thread() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        let guard = ours(stage).await;
        assert_eq!(count(stage, &spin).await, 0);
        guard.release().await.unwrap();
        spin.lock().await;
        let Outcome::Busy(busy) = stage.ours.lock("n").attempt().await.unwrap() else {
            panic!("it is Java's")
        };
        assert_eq!(busy.holders[0].id.to_string(), spin.id);
        spin.unlock().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_is_held_by_current_thread() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        assert_eq!(count(stage, &spin).await, 0);
        ours(stage).await.release().await.unwrap();
        spin.lock().await;
        assert_eq!(count(stage, &spin).await, 1);
        spin.unlock().await;
        assert_eq!(count(stage, &spin).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_is_locked_other_thread() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        spin.lock().await;
        assert!(stage.is_locked("n").await);
        spin.unlock().await;
        assert!(!stage.is_locked("n").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_is_locked() {
    play(async |stage| {
        let exists = async || stage.raw::<bool>(&["EXISTS", "n"]).await;
        assert!(!exists().await);
        let guard = ours(stage).await;
        assert!(exists().await, "as a spin lock asks");
        guard.release().await.unwrap();
        assert!(!exists().await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_unlock_fail() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        let guard = ours(stage).await;
        assert!(!spin.unlock().await);
        guard.check().unwrap();
        let ticket = stage.theirs.lock("other").ticket().await.unwrap().to_string().replace("other", "n");
        let error = stage.theirs.release_ticket(&ticket.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        assert!(!spin.try_lock().await);
        guard.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_lock_unlock() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        for _ in 0..2 {
            spin.lock().await;
            assert!(stage.ours.lock("n").try_acquire().await.unwrap().is_none());
            assert!(spin.unlock().await);
            let guard = ours(stage).await;
            assert!(!spin.try_lock().await);
            guard.release().await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_reentrancy() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        assert!(spin.try_lock().await && spin.try_lock().await);
        spin.unlock().await;
        assert!(stage.ours.lock("n").try_acquire().await.unwrap().is_none());
        spin.unlock().await;
        stage.ours.lock("n").try_acquire().await.unwrap().unwrap().release().await.unwrap();
    })
    .await;
}

/// So many tasks of ours and so many threads of Java's add to a counter, each so often.
async fn counted(stage: &Stage, clients: usize, tasks: usize, threads: usize, times: u64) {
    let (clients, counter) = (stage.clients(clients).await, Counter::default());
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (lock, counter) = (clients[task % clients.len()].lock("n"), counter.clone());
        running.spawn(async move {
            for _ in 0..times {
                counter.add_under(&lock).await;
            }
        });
    }
    for _ in 0..threads {
        // A short lease, so that ours look again soon though nobody tells them.
        let (spin, counter) = (Spin::new(stage, Duration::from_secs(1)), counter.clone());
        running.spawn(async move {
            for _ in 0..times {
                spin.lock().await;
                counter.add().await;
                assert!(spin.unlock().await);
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.get(), (tasks + threads) as u64 * times);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_single_instance() {
    play(async |stage| counted(stage, 1, 8, 7, 1).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_loop_multi_instance() {
    play(async |stage| counted(stage, 4, 4, 4, 10).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_multi_instance() {
    play(async |stage| counted(stage, 10, 10, 10, 1).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_wait() {
    play(async |stage| {
        let (spin, clock) = (Spin::new(stage, LONG), Clock::boot());
        spin.lock().await;
        let began = clock.now();
        assert!(stage.ours.lock("n").wait(SHORT).try_acquire().await.unwrap().is_none());
        assert!(began.until(clock.now()) >= SHORT);
        spin.unlock().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_async() {
    play(async |stage| {
        let (guard, mut messages) = (ours(stage).await, stage.redis.listen().await);
        let spin = Spin::new(stage, LONG);
        let spinning = spawn(async move {
            spin.lock().await;
            spin
        });
        eventually(async || stage.redis.calls("eval").await > 3).await;
        assert!(!spinning.is_finished());
        guard.release().await.unwrap();
        assert!(spinning.await.unwrap().unlock().await);
        // Nobody listened; it is told all the same, since we cannot know that nobody does.
        assert_eq!(messages.next().await, ("redisson_lock__channel:{n}".to_owned(), "0".to_owned()));
        drop(messages);
        eventually(async || stage.raw::<u32>(&["PUBSUB", "NUMPAT"]).await == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_timed_try_lock_async() {
    play(async |stage| {
        let spin = Spin::new(stage, Duration::from_secs(2));
        spin.lock().await;
        let waiting = wait(&stage.ours.lock("n").wait("20s").ttl("30s"));
        stage.heard_by("redisson_lock__channel:{n}", 1).await;
        // It tells nobody: who waits for it looks again when the lease that it saw would end, or after five seconds.
        assert!(spin.unlock().await);
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_async_wait_time() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        spin.lock().await;
        let lock = stage.ours.lock("n").wait("50ms");
        assert!(spawn(async move { lock.try_acquire().await.unwrap() }).await.unwrap().is_none());
        assert_eq!(count(stage, &spin).await, 1);
        spin.unlock().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_async_failed() {
    play(async |stage| {
        let spin = Spin::new(stage, LONG);
        spin.lock().await;
        let lock = stage.ours.lock("n");
        assert!(spawn(async move { lock.try_acquire().await.unwrap() }).await.unwrap().is_none());
        spin.unlock().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_lock_async_succeed() {
    play(async |stage| {
        let (spin, lock) = (Spin::new(stage, LONG), stage.ours.lock("n"));
        let guard = spawn(async move { lock.try_acquire().await.unwrap() }).await.unwrap().unwrap();
        assert!(!spin.try_lock().await);
        guard.release().await.unwrap();
        assert!(spin.try_lock().await && spin.unlock().await);
    })
    .await;
}
