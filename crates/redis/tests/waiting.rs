//! What waiting and acquiring cost the server.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use common::{Stage, eventually};
use leasehold_core::Outcome;
use tokio::task::JoinSet;

#[tokio::test]
async fn an_acquire_is_one_command_and_so_is_a_release() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    client.lock("warm").acquire().await.unwrap().release().await.unwrap();
    let before = counted(&stage).await;
    for _ in 0..50 {
        client.lock("x").acquire().await.unwrap().release().await.unwrap();
    }
    let after = counted(&stage).await;
    let grown: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    // Within the scripts: the fence is set once, the hash is set once and emptied once, one message is sent.
    assert_eq!(grown, [100, 0, 50, 50, 50, 50, 0], "{COUNTED:?}");
}

const COUNTED: [&str; 7] = ["evalsha", "eval", "set", "hset", "hdel", "publish", "get"];

async fn counted(stage: &Stage) -> Vec<u64> {
    let mut counts = Vec::new();
    for command in COUNTED {
        counts.push(stage.calls(command).await);
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_who_wait_are_one_to_the_server() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    let holder = other.lock("crowd").ttl("1h").acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..1000 {
        let lock = client.lock("crowd");
        waiting.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    }
    eventually(async || client.stats().waiting == 1000).await;
    eventually(async || !stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.is_empty())
        .await;
    let subscribers: Vec<(String, u32)> =
        stage.raw(&["PUBSUB", "NUMSUB", "redisson_lock__channel:{crowd}"]).await;
    assert_eq!(subscribers[0].1, 1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = stage.calls("evalsha").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = stage.calls("evalsha").await - before;
    assert!(asked < 20, "{asked} requests in a second of waiting");
    holder.release().await.unwrap();
    while let Some(done) = waiting.join_next().await {
        done.unwrap();
    }
    eventually(async || stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.is_empty())
        .await;
}

#[tokio::test]
async fn no_channel_stays_subscribed() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    let guard = other.lock("a").acquire().await.unwrap();
    let permits = other.semaphore("s", 1).permits(1).acquire().await.unwrap();
    other.latch("l").arm(1).await.unwrap();
    for _ in 0..3 {
        assert!(client.lock("a").wait("20ms").try_acquire().await.unwrap().is_none());
        assert!(client.lock("a").fair().wait("20ms").try_acquire().await.unwrap().is_none());
        assert!(client.rwlock("a").read().wait("20ms").try_acquire().await.unwrap().is_none());
        assert!(client.semaphore("s", 1).permits(1).wait("20ms").try_acquire().await.unwrap().is_none());
        assert!(!client.latch("l").wait_for("20ms").await.unwrap());
    }
    eventually(async || stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.is_empty())
        .await;
    guard.release().await.unwrap();
    permits.release().await.unwrap();
}

#[tokio::test]
async fn listing_goes_by_scan_and_finds_every_lock_once() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let mut guards = Vec::new();
    for number in 0..300 {
        stage.raw::<()>(&["SET", &format!("noise:{number}"), "x"]).await;
        let name = format!("job:{number:03}");
        let lock = if number % 3 == 0 { client.lock(&name).plain() } else { client.lock(&name) };
        guards.push(lock.acquire().await.unwrap());
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.list("", cursor.as_deref(), 7).await.unwrap();
        assert!(page.locks.len() <= 7);
        found.extend(page.locks.into_iter().map(|state| state.name));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 300);
    assert_eq!(stage.calls("keys").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_cohort_one_in_64_asks_the_server() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let lock = client.lock("cohort").cohort(64);
    let first = lock.acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..639 {
        let lock = lock.clone();
        waiting.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let fence = guard.fence();
            guard.release().await.unwrap();
            fence
        });
    }
    let standing = async || match lock.attempt().await.unwrap() {
        Outcome::Busy(busy) => busy.waiters,
        Outcome::Held(_) => 0,
    };
    eventually(async || standing().await == 639).await;
    let before = (stage.calls("evalsha").await, stage.calls("subscribe").await);
    let mut fences = vec![first.fence()];
    first.release().await.unwrap();
    while let Some(done) = waiting.join_next().await {
        fences.push(done.unwrap());
    }
    fences.sort_unstable();
    assert!(fences.is_sorted_by(|one, next| one < next), "every one of them has a fence of its own");
    let asked = (stage.calls("evalsha").await - before.0, stage.calls("subscribe").await - before.1);
    assert_eq!(asked, (19, 0), "ten blocks: ten releases, and an acquire for each but the first");
}

#[tokio::test]
async fn a_cohort_of_fenced_locks_leaves_redissons_token_at_the_end_of_its_block() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let guard = client.lock("f").fenced().cohort(8).acquire().await.unwrap();
    let token: u64 = stage.raw(&["GET", "redisson_lock_token:{f}"]).await;
    assert_eq!(token, guard.fence() + 7);
    let kept: u64 = stage.raw(&["GET", "leasehold_fence:{f}"]).await;
    assert_eq!(kept, token);
    guard.release().await.unwrap();
    let next = client.lock("f").fenced().acquire().await.unwrap();
    assert!(next.fence() > token);
}

#[tokio::test]
async fn notes_of_the_dead_do_not_pile_up() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    let holder = other.lock("x").acquire().await.unwrap();
    for number in 0..300 {
        let id = format!("dead:{number}");
        let _: u32 = stage.raw(&["HSET", "leasehold_waits:{x}", &id, "1000 500 exclusive "]).await;
    }
    let lock = client.lock("x");
    let waiting = common::spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
    eventually(async || stage.raw::<u32>(&["HLEN", "leasehold_waits:{x}"]).await <= 256).await;
    holder.release().await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_clients_gets_its_turns_one_by_one() {
    let Some(stage) = Stage::set().await else { return };
    let holder = stage.client().await.lock("crowd").acquire().await.unwrap();
    let (inside, mut waiting) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    for _ in 0..24 {
        let (client, inside) = (stage.client().await, inside.clone());
        waiting.spawn(async move {
            let guard = client.lock("crowd").acquire().await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            guard.release().await.unwrap();
        });
    }
    // By then they know of each other, and that they are a crowd.
    eventually(async || stage.raw::<u32>(&["HLEN", "leasehold_waits:{crowd}"]).await == 24).await;
    holder.release().await.unwrap();
    let mut turns = 0;
    while let Some(done) = waiting.join_next().await {
        done.unwrap();
        turns += 1;
    }
    assert_eq!(turns, 24);
}
