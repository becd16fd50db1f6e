//! What cannot be meant is refused at the edge: with the kind `Config`, and before anything is sent.

use std::time::Duration;

use leasehold_core::{Client, ErrorKind, Lock, MAX_NAME, Retry};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, joined, refusal, settled, state, take},
};
use crate::scripted::Script;

async fn is_refused(lock: Lock) {
    for result in [lock.acquire().await.map(Some), lock.try_acquire().await] {
        let error = refusal(result);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().len() < 1000, "a message fit to be read");
    }
}

/// Leases that no store gives.
pub(super) async fn leases_beyond_reason_are_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("ttl"));
    let can = client.info().capabilities;
    let nanosecond = Duration::from_nanos(1);
    for ttl in [
        Duration::ZERO,
        nanosecond,
        can.min_ttl.saturating_sub(nanosecond),
        can.max_ttl + nanosecond,
        Duration::MAX,
    ] {
        is_refused(client.lock(&name).ttl(ttl)).await;
    }
    for text in
        ["0s", "1ns", "10000 years", "", "5", "-1s", "soon", "1 fortnight", "99999999999999999999999999s"]
    {
        is_refused(client.lock(&name).ttl(text)).await;
    }
    if can.detached {
        assert_eq!(refusal(client.lock(&name).ttl("0s").ticket().await).kind(), ErrorKind::Config);
    }
    assert_eq!(script.requests(), 0, "what is refused is not sent");
    take(&client.lock(&name).ttl(can.max_ttl)).await.release().await.unwrap();
    take(&client.lock(&name).ttl(can.min_ttl)).await.release().await.unwrap();
    settled(&client, &name).await;
}

/// Waits and holds that are not lengths of time; the longest that are.
pub(super) async fn waits_that_are_none_are_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("wait"));
    for text in ["", "later", "5", "-1s", "1 fortnight"] {
        is_refused(client.lock(&name).wait(text)).await;
        is_refused(client.lock(&name).max_hold(text)).await;
        assert_eq!(refusal(client.shutdown(text).await).kind(), ErrorKind::Config);
    }
    is_refused(client.lock(&name).max_hold(Duration::ZERO)).await;
    is_refused(client.lock(&name).max_hold("1ns")).await;
    assert_eq!(script.requests(), 0, "what is refused is not sent");
    for wait in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let lock = client.lock(&name).wait(wait).max_hold(Duration::MAX);
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    settled(&client, &name).await;
}

/// Names that are none.
pub(super) async fn names_that_are_none_are_refused(fixture: Fixture) {
    let script = Script::new();
    let client = fixture.scripted(&script).await;
    let prefixed = fixture.builder(&script).await.prefix("a:").build();
    let (long, huge, limit) = ("x".repeat(MAX_NAME + 1), "x".repeat(1 << 20), "x".repeat(MAX_NAME));
    for name in ["", "a\0b", "a\nb", "a\rb", "\t", "\u{1b}[2J", "\u{7f}", "\u{85}", &long, &huge] {
        name_is_refused(&client, name).await;
        name_is_refused(&prefixed, name).await;
    }
    name_is_refused(&prefixed, &limit).await;
    for prefix in ["a", "a:b:", "a\n:", "{a:", "redisson_lock_queue:"] {
        let ambiguous = fixture.builder(&script).await.prefix(prefix).build();
        name_is_refused(&ambiguous, "b").await;
        assert_eq!(refusal(ambiguous.list("", None, 10).await).kind(), ErrorKind::Config, "{prefix}");
        assert_eq!(refusal(ambiguous.elections(None, 10).await).kind(), ErrorKind::Config, "{prefix}");
    }
    assert_eq!(script.requests(), 0, "what is refused is not sent");
    let mark = fixture.name("x");
    let longest = format!("{mark}{}", "锁".repeat((MAX_NAME - mark.len()) / 3));
    take(&client.lock(&longest)).await.release().await.unwrap();
}

async fn name_is_refused(client: &Client, name: &str) {
    is_refused(client.lock(name)).await;
    is_refused(client.rwlock(name).read()).await;
    is_refused(client.rwlock(name).write().fair()).await;
    is_refused(client.semaphore(name, 2).permits(1)).await;
    assert_eq!(refusal(client.latch(name).arm(1).await).kind(), ErrorKind::Config);
    assert_eq!(refusal(client.latch(name).wait().await).kind(), ErrorKind::Config);
    assert_eq!(refusal(client.set().lock(name).acquire().await).kind(), ErrorKind::Config);
    assert_eq!(refusal(client.lock(name).ticket().await).kind(), ErrorKind::Config);
}

/// One who would be one too many to wait is refused, leaves nothing behind, and finds room again once another went.
pub(super) async fn more_than_may_wait_are_refused(fixture: Fixture) {
    let (holder, name) = (fixture.client().await, fixture.name("crowd"));
    let client = fixture.builder(&Script::new()).await.max_waiting(3).build();
    let mut orders: Vec<fn(Lock) -> Lock> = vec![|lock| lock];
    if fixture.can().await.fair {
        orders.push(Lock::fair);
    }
    for order in orders {
        let held = take(&holder.lock(&name)).await;
        let mut waiting = JoinSet::new();
        for _ in 0..3 {
            let lock = order(client.lock(&name));
            waiting.spawn(async move { lock.acquire().await.unwrap().release().await.unwrap() });
        }
        eventually(async || client.stats().waiting == 3).await;
        for _ in 0..5 {
            let error = refusal(order(client.lock(&name)).acquire().await);
            assert_eq!((error.kind(), error.retry()), (ErrorKind::Capacity, Retry::Later), "{error}");
            assert!(error.to_string().contains("3 of this client wait"), "{error}");
            let error = refusal(order(client.lock(&name)).wait("1h").acquire().await);
            assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
        }
        assert!(order(client.lock(&name)).try_acquire().await.unwrap().is_none(), "to try is not to wait");
        assert_eq!(client.stats().waiting, 3);
        assert!(state(&holder, &name).await.waiters.len() <= 3, "those refused are not in line");
        held.release().await.unwrap();
        joined(waiting).await;
        order(client.lock(&name)).acquire().await.unwrap().release().await.unwrap();
        settled(&client, &name).await;
    }
}

/// Labels are for people: short, and of printable text like names.
pub(super) async fn labels_beyond_reason_are_refused(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("label"));
    is_refused(client.lock(&name).label(&"x".repeat(1 << 20))).await;
    assert_eq!(script.requests(), 0, "what is refused is not sent");
    take(&client.lock(&name).label("nightly 备份 \"x\"")).await.release().await.unwrap();
}
