//! The driver against the real thing: two releases of Redisson, one holding what the other wants.
//!
//! What is shown here is that both are driven rightly and understand each other; so that when one of them is ours,
//! what fails is ours.

#![cfg(unix)]

use std::time::Duration;

use leasehold_interop::{Call, Config, Java, Version};
use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use serde::de::DeserializeOwned;

const LEASE: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_secs(20);

/// A Redis with the newest Redisson and an old one on it.
struct Stage {
    redis: Redis,
    newest: Java,
    old: Java,
}

impl Stage {
    fn set() -> Option<Self> {
        let redis = start_or_skip(Redis::start)?;
        // A short watchdog shows renewal soon. What is woken must be woken by a message: no test waits so long.
        let config = Config::single(&redis.url()).with_watchdog(Duration::from_secs(3));
        let newest = start_or_skip(|| Java::start(Version::Newest, &config))?;
        let old = start_or_skip(|| Java::start(Version::Old, &config))?;
        Some(Self { redis, newest, old })
    }

    fn both_ways(&self) -> [(&Java, &Java); 2] {
        [(&self.newest, &self.old), (&self.old, &self.newest)]
    }

    /// Until somebody listens on a channel of that pattern, or nobody does.
    async fn listeners(&self, pattern: &str, count: usize) {
        self.until(&["PUBSUB", "CHANNELS", pattern], |answer| answer == format!("*{count}")).await;
    }

    async fn until(&self, command: &[&str], good: impl Fn(&str) -> bool) {
        let wait = async {
            while !self.redis.command(command).is_ok_and(|answer| good(&answer)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, wait).await.unwrap_or_else(|_| panic!("{command:?} did not become so"));
    }
}

async fn value<T: DeserializeOwned + 'static>(call: Call<T>) -> T {
    call.await.unwrap_or_else(|error| panic!("{error}")).value
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_is_woken_by_the_unlock() {
    let Some(stage) = Stage::set() else { return };
    for (holder, waiter) in stage.both_ways() {
        let (holds, waits) = (holder.thread("t1").lock("n"), waiter.thread("t1").lock("n"));
        value(holds.lock_for(LEASE)).await;
        assert!(!value(waits.try_lock()).await);
        let mut waiting = waits.lock_for(LEASE);
        stage.listeners("redisson_lock__channel:{n}", 1).await;
        assert!(!waiting.is_done());
        let unlocked = holds.unlock().await.unwrap();
        let locked = waiting.within(SOON).await.unwrap();
        assert!(locked.ended > unlocked.began);
        value(waits.unlock()).await;
        stage.listeners("*", 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_are_counted_by_thread_and_only_the_owner_unlocks() {
    let Some(stage) = Stage::set() else { return };
    for (holder, other) in stage.both_ways() {
        let (mine, sibling) = (holder.thread("t1").lock("n"), holder.thread("t2").lock("n"));
        value(mine.lock()).await;
        value(mine.lock()).await;
        assert_eq!(value(mine.hold_count()).await, 2);
        assert_eq!(value(sibling.hold_count()).await, 0);
        assert!(sibling.unlock().await.unwrap_err().is_not_owner());
        let name = holder.thread("t1").holder().await.unwrap();
        assert_eq!(stage.redis.command(&["HEXISTS", "n", &name]).unwrap(), ":1");
        assert!(value(other.thread("t1").lock("n").force_unlock()).await);
        assert!(!value(mine.is_locked()).await);
        assert!(mine.unlock().await.unwrap_err().is_not_owner());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_renews() {
    let Some(stage) = Stage::set() else { return };
    for (holder, other) in stage.both_ways() {
        value(holder.thread("t1").lock("n").lock()).await;
        let seen = other.thread("t1").lock("n");
        let renewal = async {
            let mut before = value(seen.ttl()).await;
            loop {
                let now = value(seen.ttl()).await;
                if now > before {
                    return;
                }
                before = now;
            }
        };
        tokio::time::timeout(SOON, renewal).await.unwrap();
        value(holder.thread("t1").lock("n").unlock()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_held_expires() {
    let Some(mut stage) = Stage::set() else { return };
    value(stage.newest.thread("t1").lock("n").lock()).await;
    let waiting = stage.old.thread("t1").lock("n").lock();
    stage.newest.crash().unwrap();
    waiting.within(SOON).await.unwrap();
    assert!(stage.newest.thread("t1").lock("n").unlock().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fair_lock_is_handed_over_in_order() {
    let Some(stage) = Stage::set() else { return };
    let (newest, old) = (&stage.newest, &stage.old);
    value(newest.thread("t0").fair("f").lock_for(LEASE)).await;
    let queue =
        [old.thread("t1"), newest.thread("t1"), old.thread("t2"), newest.thread("t2")].map(|t| t.fair("f"));
    let mut waiting = Vec::new();
    for (place, waiter) in queue.iter().enumerate() {
        waiting.push(waiter.lock_for(LEASE));
        stage.until(&["LLEN", "redisson_lock_queue:{f}"], |answer| answer == format!(":{}", place + 1)).await;
        stage.listeners("redisson_lock__channel:{f}:*", place + 1).await;
    }
    value(newest.thread("t0").fair("f").unlock()).await;
    let mut last = None;
    for (waiter, call) in queue.iter().zip(waiting) {
        let locked = call.within(SOON).await.unwrap();
        assert!(last < Some(locked.ended));
        last = Some(locked.ended);
        value(waiter.unlock()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_share_and_a_writer_waits_for_all() {
    let Some(stage) = Stage::set() else { return };
    for (one, other) in stage.both_ways() {
        value(one.thread("t1").read("rw").lock_for(LEASE)).await;
        value(other.thread("t1").read("rw").lock_for(LEASE)).await;
        let writer = other.thread("t2").write("rw");
        let mut waiting = writer.lock_for(LEASE);
        stage.listeners("redisson_rwlock:{rw}", 1).await;
        value(one.thread("t1").read("rw").unlock()).await;
        assert!(!waiting.is_done());
        value(other.thread("t1").read("rw").unlock()).await;
        waiting.within(SOON).await.unwrap();
        let reading = one.thread("t1").read("rw").lock_for(LEASE);
        stage.listeners("redisson_rwlock:{rw}", 1).await;
        value(writer.unlock()).await;
        reading.within(SOON).await.unwrap();
        value(one.thread("t1").read("rw").unlock()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_only_grow() {
    let Some(stage) = Stage::set() else { return };
    let mut last = 0;
    for (one, other) in stage.both_ways() {
        let lock = one.thread("t1").fenced("z");
        let token = value(lock.lock_and_get_token()).await;
        assert!(token > last);
        assert_eq!(value(other.thread("t1").fenced("z").token()).await, token);
        let refused = other.thread("t1").fenced("z").try_lock_and_get_token(Duration::ZERO, LEASE);
        assert_eq!(value(refused).await, None);
        last = token;
        value(lock.unlock()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn semaphores_latches_and_limiters_are_shared() {
    let Some(stage) = Stage::set() else { return };
    for (index, (one, other)) in stage.both_ways().into_iter().enumerate() {
        let (here, there) = (one.thread("t1"), other.thread("t1"));

        let name = format!("semaphore{index}");
        assert!(value(here.semaphore(&name).try_set_permits(1)).await);
        value(here.semaphore(&name).acquire(1)).await;
        let waiting = there.semaphore(&name).acquire(1);
        stage.listeners("redisson_sc:*", 1).await;
        value(here.semaphore(&name).release(1)).await;
        waiting.within(SOON).await.unwrap();

        let name = format!("permits{index}");
        assert!(value(here.permits(&name).try_set_permits(1)).await);
        let id = value(here.permits(&name).acquire_for(LEASE)).await;
        let waiting = there.permits(&name).acquire_for(LEASE);
        stage.listeners("redisson_sc:*", 1).await;
        value(here.permits(&name).release(&id)).await;
        let next = waiting.within(SOON).await.unwrap().value;
        assert!(!value(here.permits(&name).try_release(&id)).await);
        assert!(value(here.permits(&name).try_release(&next)).await);

        let name = format!("latch{index}");
        assert!(value(here.latch(&name).try_set_count(1)).await);
        let waiting = there.latch(&name).wait();
        stage.listeners("redisson_countdownlatch__channel__*", 1).await;
        value(here.latch(&name).count_down()).await;
        assert!(waiting.within(SOON).await.unwrap().value);

        let name = format!("limiter{index}");
        assert!(value(here.limiter(&name).try_set_rate(1, LEASE)).await);
        assert!(value(there.limiter(&name).try_acquire(1)).await);
        assert!(!value(here.limiter(&name).try_acquire(1)).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_under_one_lock_is_exact() {
    let Some(stage) = Stage::set() else { return };
    let (newest, old) = (stage.newest.thread("t1"), stage.old.thread("t1"));
    let calls = [newest.count(&newest.lock("c"), "count", 8, 25), old.count(&old.lock("c"), "count", 8, 25)];
    for call in calls {
        assert_eq!(value(call).await, 200);
    }
    let total = old.count(&old.lock("c"), "count", 1, 1);
    value(total).await;
    assert_eq!(stage.redis.command(&["INCRBY", "count", "0"]).unwrap(), ":401");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_a_wait() {
    let Some(stage) = Stage::set() else { return };
    value(stage.newest.thread("t1").lock("n").lock_for(LEASE)).await;
    let waiter = stage.old.thread("t1");
    let waiting = waiter.lock("n").lock_interruptibly();
    stage.listeners("redisson_lock__channel:{n}", 1).await;
    value(waiter.interrupt()).await;
    // Which exception it is depends on how far it had got, and so does whether Redisson goes on listening.
    assert!(waiting.await.is_err());
    assert!(!value(waiter.lock("n").is_held()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_locks_are_taken_as_one() {
    let Some(stage) = Stage::set() else { return };
    let both = stage.newest.thread("t1").multi(&["a", "b"]);
    assert!(value(both.try_lock_for(SOON, LEASE)).await);
    for name in ["a", "b"] {
        assert!(!value(stage.old.thread("t1").lock(name).try_lock()).await);
    }
    value(both.unlock()).await;
    assert!(!value(stage.old.thread("t1").lock("b").is_locked()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_independent_servers_is_enough() {
    let (Some(a), Some(b), Some(mut c)) =
        (start_or_skip(Redis::start), start_or_skip(Redis::start), start_or_skip(Redis::start))
    else {
        return;
    };
    let config = Config::singles(&[&a.url(), &b.url(), &c.url()]);
    let Some(java) = start_or_skip(|| Java::start(Version::Newest, &config)) else { return };
    let lock = java.thread("t1").redlock("n");
    assert!(value(lock.try_lock_for(SOON, LEASE)).await);
    for server in [&a, &b, &c] {
        assert_eq!(server.command(&["EXISTS", "n"]).unwrap(), ":1");
    }
    value(lock.unlock()).await;
    c.crash().unwrap();
    assert!(value(lock.try_lock_for(SOON, LEASE)).await);
    assert_eq!(b.command(&["EXISTS", "n"]).unwrap(), ":1");
}

#[test]
fn what_cannot_connect_says_why() {
    let Some(mut redis) = start_or_skip(Redis::start) else { return };
    redis.crash().unwrap();
    let Err(error) = Java::start(Version::Newest, &Config::single(&redis.url())) else {
        panic!("it started")
    };
    // Without Java it is the other sentence.
    let error = error.to_string();
    assert!(error.contains("Unable to connect") || error.contains("is not installed"), "{error}");
}
