//! `RedissonPermitExpirableSemaphoreTest`: permits that expire, which is what ours are. Its cases about giving
//! back are in `permit_expirable_semaphore_release`.

use leasehold_core::{ErrorKind, Guard, Semaphore, State, backend::Mode};
use tokio::task::JoinSet;

use crate::{
    common::eventually,
    stage::{Counter, LONG, SHORT, Stage, play, renewed, wait},
};

const CHANNEL: &str = "redisson_sc:{s}";
const EXPIRIES: &str = "{s}:timeout";

/// What is available and what is out, once the store has taken back what expired.
pub(crate) async fn counts(stage: &Stage) -> (i64, usize) {
    let holders = stage.holders("s").await;
    let out = holders.iter().map(|holder| match holder.mode {
        Mode::Permits { take, .. } => take.get(),
        mode => panic!("a semaphore is held {mode:?}"),
    });
    (stage.raw::<Option<i64>>(&["GET", "s"]).await.unwrap_or(0), out.sum::<u32>() as usize)
}

/// So many permits at once that are not renewed.
pub(crate) async fn fleeting(semaphore: &Semaphore, take: u32) -> Guard {
    semaphore.permits(take).ttl(SHORT).no_renew().acquire().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_update_lease_time() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 1);
        let guard = fleeting(&semaphore, 1).await;
        guard.extend("30s").await.unwrap();
        assert!(guard.remaining() > SHORT * 10);
        assert!(stage.holders("s").await[0].remaining > SHORT * 10);
        guard.release().await.unwrap();
        let expired = fleeting(&semaphore, 1).await;
        expired.lost().await;
        assert_eq!(expired.extend("30s").await.unwrap_err().kind(), ErrorKind::Lost);
        let ticket = semaphore.permits(1).ticket().await.unwrap();
        stage.ours.renew_ticket(&ticket, "40s").await.unwrap();
        stage.ours.release_ticket(&ticket).await.unwrap();
        let error = stage.ours.renew_ticket(&ticket, "40s").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_not_existent() {
    play(async |stage| {
        assert!(stage.ours.inspect("s").await.unwrap().is_none());
        assert_eq!(counts(stage).await, (0, 0));
    })
    .await;
}

/// The case of the three counts: taken one after the other, and back when their leases end.
async fn count_over_expiry(stage: &Stage) {
    let semaphore = stage.ours.semaphore("s", 2);
    let mut guards = Vec::new();
    for taken in 1..=2 {
        guards.push(fleeting(&semaphore, 1).await);
        assert_eq!(stage.raw::<i64>(&["GET", "s"]).await, 2 - taken);
        assert_eq!(stage.raw::<i64>(&["ZCARD", EXPIRIES]).await, taken);
    }
    for guard in &guards {
        guard.lost().await;
    }
    eventually(async || counts(stage).await == (2, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_available_permits() {
    play(async |stage| {
        count_over_expiry(stage).await;
        // And in time: given back instead of expired.
        let guard = stage.ours.semaphore("s", 2).acquire().await.unwrap();
        assert_eq!(counts(stage).await.0, 1);
        guard.release().await.unwrap();
        assert_eq!(counts(stage).await.0, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquired_permits() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 2);
        let (kept, expires) = (semaphore.acquire().await.unwrap(), fleeting(&semaphore, 1).await);
        assert_eq!(counts(stage).await.1, 2);
        expires.lost().await;
        eventually(async || counts(stage).await.1 == 1).await;
        kept.release().await.unwrap();
        assert_eq!(counts(stage).await.1, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_get_permits() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 2);
        let total = async || stage.theirs.inspect("s").await.unwrap().map(|state| state.kind.to_string());
        let (kept, expires) = (semaphore.acquire().await.unwrap(), fleeting(&semaphore, 1).await);
        assert_eq!(total().await.as_deref(), Some("a semaphore of 2 permits"));
        expires.lost().await;
        eventually(async || counts(stage).await == (1, 1)).await;
        assert_eq!(total().await.as_deref(), Some("a semaphore of 2 permits"));
        kept.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expiration() {
    play(async |stage| {
        // Java set it, one of its permits is out, and it is to be gone at a time.
        stage.raw::<()>(&["SET", "s", "1"]).await;
        stage.raw::<u32>(&["ZADD", EXPIRIES, "922337203685477", "0123456789abcdef"]).await;
        for key in ["s", EXPIRIES] {
            stage.raw::<u32>(&["PEXPIRE", key, "2000"]).await;
        }
        let guard = stage.ours.semaphore("s", 2).acquire().await.unwrap();
        assert!((1..=2000).contains(&stage.ttl("s").await), "ours does not keep it");
        assert!((1..=2000).contains(&stage.ttl(EXPIRIES).await));
        stage.raw::<u32>(&["DEL", "s", EXPIRIES]).await;
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire() {
    play(async |stage| {
        let old = fleeting(&stage.theirs.semaphore("s", 1), 1).await;
        let new = stage.ours.semaphore("s", 1).acquire().await.unwrap();
        has_passed(stage, old, new).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_expire_try_acquire() {
    play(async |stage| {
        let old = fleeting(&stage.theirs.semaphore("s", 1), 1).await;
        let new = stage.ours.semaphore("s", 1).permits(1).wait("20s").try_acquire().await.unwrap().unwrap();
        has_passed(stage, old, new).await;
    })
    .await;
}

/// The permit passed from one to the other, and the old one gives nothing back.
async fn has_passed(stage: &Stage, old: Guard, new: Guard) {
    assert_eq!(old.state(), State::Lost);
    assert_eq!(old.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(counts(stage).await, (0, 1));
    new.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_set_permits() {
    play(async |stage| {
        let guard = stage.ours.semaphore("s", 10).acquire().await.unwrap();
        let error = stage.theirs.semaphore("s", 15).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("10"), "{error}");
        guard.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_blocking_acquire() {
    play(async |stage| {
        let guard = stage.theirs.semaphore("s", 1).permits(1).ttl(LONG).acquire().await.unwrap();
        let ids: Vec<Vec<u8>> = stage.raw(&["ZRANGE", EXPIRIES, "0", "-1"]).await;
        assert_eq!(ids[0].len(), 16, "32 characters to Java");
        let waiting = wait(&stage.ours.semaphore("s", 1).permits(1));
        stage.heard_by(CHANNEL, 1).await;
        assert!(!waiting.is_finished());
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_blocking_acquire_many() {
    play(async |stage| {
        let semaphore = stage.theirs.semaphore("s", 10);
        let five = semaphore.permits(5).ttl(LONG).acquire().await.unwrap();
        assert_eq!(stage.raw::<u32>(&["ZCARD", EXPIRIES]).await, 5);
        let waiting = wait(&stage.ours.semaphore("s", 10).permits(6));
        stage.heard_by(CHANNEL, 1).await;
        five.release().await.unwrap();
        let six = waiting.await.unwrap();
        assert_eq!(stage.raw::<u32>(&["ZCARD", EXPIRIES]).await, 6);
        six.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_acquire_many() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 10);
        let four = semaphore.permits(4).try_acquire().await.unwrap().unwrap();
        let five = semaphore.permits(5).try_acquire().await.unwrap().unwrap();
        assert!(semaphore.permits(2).try_acquire().await.unwrap().is_none());
        assert_eq!(counts(stage).await.0, 1);
        four.release().await.unwrap();
        five.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_acquire() {
    play(async |stage| {
        let guard = stage.theirs.semaphore("s", 1).permits(1).ttl(LONG).acquire().await.unwrap();
        let permit = stage.ours.semaphore("s", 1).permits(1);
        assert!(permit.try_acquire().await.unwrap().is_none());
        assert!(permit.clone().wait("50ms").try_acquire().await.unwrap().is_none());
        let waiting = wait(&permit.wait("20s"));
        stage.heard_by(CHANNEL, 1).await;
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    })
    .await;
}

/// So many tasks, spread over so many clients, add to a counter under the only permit, each so often.
async fn counted(stage: &Stage, clients: usize, tasks: usize, times: u64) {
    let (clients, counter) = (stage.clients(clients).await, Counter::default());
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let permit = clients[task % clients.len()].semaphore("s", 1).permits(1).ttl("5s");
        let counter = counter.clone();
        running.spawn(async move {
            for _ in 0..times {
                counter.add_under(&permit).await;
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.get(), tasks as u64 * times);
    assert_eq!(counts(stage).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_single_instance() {
    play(async |stage| counted(stage, 1, 15, 1).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_loop_multi_instance() {
    play(async |stage| counted(stage, 6, 6, 8).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire() {
    play(async |stage| {
        // Free permits are had without waiting for anything: nothing is subscribed, one request is sent.
        let semaphore = stage.ours.semaphore("s", 2);
        semaphore.acquire().await.unwrap().release().await.unwrap();
        let before = stage.redis.calls("evalsha").await;
        let guard = semaphore.permits(1).ttl("100s").acquire().await.unwrap();
        assert_eq!(stage.redis.calls("evalsha").await - before, 1);
        assert!(stage.channels().await.is_empty());
        guard.release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_acquire_async_many() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 10);
        let (four, five) = (semaphore.permits(4), semaphore.permits(5));
        let (four, five) = tokio::join!(four.acquire(), five.acquire());
        assert_eq!(counts(stage).await.0, 1);
        four.unwrap().release().await.unwrap();
        five.unwrap().release().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_get_lease_time() {
    play(async |stage| {
        let guard = stage.ours.semaphore("s", 1).permits(1).ttl(SHORT).acquire().await.unwrap();
        assert!(guard.remaining() <= SHORT);
        let seen = stage.holders("s").await[0].remaining;
        assert!(seen <= SHORT && !seen.is_zero(), "{seen:?}");
        renewed(&guard, 3).await;
        let id = guard.id();
        guard.release().await.unwrap();
        assert_eq!(stage.count("s", id).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_multi_permits() {
    play(async |stage| in_turn(stage, 2, 2).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_concurrency_multi_permits2() {
    play(async |stage| in_turn(stage, 1, 2).await).await;
}

/// Two clients want so many of two permits, again and again; both get them in turn.
async fn in_turn(stage: &Stage, one: u32, other: u32) {
    let tasks = [(&stage.ours, one), (&stage.theirs, other)].map(|(client, take)| {
        let permits = client.semaphore("s", 2).permits(take);
        async move {
            for _ in 0..15 {
                permits.acquire().await.unwrap().release().await.unwrap();
            }
        }
    });
    futures_util::future::join_all(tasks).await;
    assert_eq!(counts(stage).await, (2, 0));
}
