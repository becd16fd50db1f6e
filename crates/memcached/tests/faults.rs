//! Bad servers and bad luck: a clear error, and holders are told of what is lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::time::Duration;

use leasehold_core::{
    Client, ErrorKind, MAX_NAME,
    backend::{Backend, Level, Loss, Severity},
};
use leasehold_memcached::{Memcached, MemcachedConfig};
use leasehold_testkit::servers::{memcached as servers, start_or_skip};

async fn client(server: &servers::Memcached) -> Client {
    Client::new(Memcached::open(config(server)).await.unwrap())
}

fn config(server: &servers::Memcached) -> MemcachedConfig {
    MemcachedConfig::from_url(&server.url()).unwrap().with_command_timeout(Duration::from_millis(500))
}

#[tokio::test]
async fn its_locks_are_said_to_be_a_hint() {
    let Some(server) = start_or_skip(servers::Memcached::start) else { return };
    let client = client(&server).await;
    let guarantee = client.info().guarantee;
    assert_eq!(guarantee.level, Level::S0);
    for danger in ["evicts", "restarted", "flushed"] {
        assert!(guarantee.unless.contains(danger), "{}", guarantee.unless);
    }
}

#[tokio::test]
async fn a_holder_is_told_when_the_server_is_flushed_and_the_fence_of_the_next_is_greater() {
    let Some(server) = start_or_skip(servers::Memcached::start) else { return };
    let (client, other) = (client(&server).await, client(&server).await);
    let guard = client.lock("a").ttl("6s").acquire().await.unwrap();
    // Until the server's clock has moved on: a name that was never used begins with its time.
    for name in 0.. {
        let fresh = other.lock(&format!("fresh-{name}")).acquire().await.unwrap();
        if fresh.fence() > guard.fence() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.flush().unwrap();
    assert_eq!(guard.lost().await, Loss::Gone);
    let next = other.lock("a").acquire().await.unwrap();
    assert!(next.fence() > guard.fence(), "{} is not after {}", next.fence(), guard.fence());
}

#[tokio::test]
async fn a_holder_is_told_when_the_server_was_restarted_and_leaves_the_next_alone() {
    let Some(mut server) = start_or_skip(servers::Memcached::start) else { return };
    let (client, other) = (client(&server).await, client(&server).await);
    let guard = client.lock("a").ttl("5s").acquire().await.unwrap();
    server.restart().unwrap();
    // Another's first write after the start has the version that ours had: it must not be taken for ours.
    let next = other.lock("a").acquire().await.unwrap();
    assert_eq!(guard.lost().await, Loss::Gone);
    next.check().unwrap();
    assert!(guard.release().await.is_err());
    assert!(client.lock("a").try_acquire().await.unwrap().is_none(), "it is still the other's");
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_holder_is_told_when_its_lock_was_evicted() {
    let Some(server) = start_or_skip(|| servers::Memcached::start_with(&["-m", "2"])) else { return };
    let client = client(&server).await;
    let guard = client.lock("a").ttl("6s").acquire().await.unwrap();
    server.fill(&[128, 192, 256, 320, 384, 448, 512, 640, 768], 6000).unwrap();
    assert_eq!(guard.lost().await, Loss::Gone);
    let findings = client.diagnose().await.unwrap();
    let evictions = findings.iter().find(|finding| finding.topic == "evictions").unwrap();
    assert_eq!(evictions.severity, Severity::Danger);
}

#[tokio::test]
async fn a_server_that_is_gone_or_silent_is_unavailable_and_comes_back_by_itself() {
    let Some(mut server) = start_or_skip(servers::Memcached::start) else { return };
    let client = client(&server).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    server.crash().unwrap();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(Memcached::open(config(&server)).await.unwrap_err().kind(), ErrorKind::Unavailable);
    server.restart().unwrap();
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    server.pause().unwrap();
    let error = client.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    server.resume().unwrap();
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn wrong_credentials_are_denied_and_not_repeated() {
    let Some(server) = start_or_skip(servers::Memcached::start_guarded) else { return };
    for config in [config(&server), config(&server).with_login(servers::Memcached::USER, "guessed")] {
        let error = Memcached::open(config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!error.to_string().contains("guessed"), "{error}");
    }
    let right = config(&server).with_login(servers::Memcached::USER, servers::Memcached::PASSWORD);
    let client = Client::new(Memcached::open(right).await.unwrap());
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_server_without_compare_and_set_is_refused() {
    let start = || servers::Memcached::start_with(&["-C"]);
    let Some(server) = start_or_skip(start) else { return };
    let error = Memcached::open(config(&server)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("without -C"), "{error}");
}

#[tokio::test]
async fn the_longest_and_the_strangest_names_are_locks_like_any_other() {
    let Some(server) = start_or_skip(servers::Memcached::start) else { return };
    let (client, other) = (client(&server).await, client(&server).await);
    let long = "x".repeat(MAX_NAME);
    let twin = format!("{}y", &long[1..]);
    let names = [long.as_str(), &twin, "a b", "a%20b", "锁", " ", "noreply", "a b 0 0 1"];
    let mut guards = Vec::new();
    for name in names {
        guards.push(client.lock(name).try_acquire().await.unwrap().unwrap());
        assert!(other.lock(name).try_acquire().await.unwrap().is_none());
    }
    let mut listed: Vec<String> =
        other.list("", None, 100).await.unwrap().locks.into_iter().map(|state| state.name).collect();
    let mut wanted = names.map(ToOwned::to_owned);
    listed.sort();
    wanted.sort();
    assert_eq!(listed, wanted);
    let error = client.lock(&"x".repeat(MAX_NAME + 1)).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    for guard in guards {
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_request_leaves_its_answer_to_nobody() {
    let Some(server) = start_or_skip(servers::Memcached::start) else { return };
    let store = Memcached::open(config(&server)).await.unwrap();
    let read = async |name: &str| store.read_cell(name).await.unwrap().unwrap().value;
    for name in ["a", "b"] {
        let absent = leasehold_core::backend::Expect::Absent;
        let _written = store.write_cell(name, absent, name.as_bytes(), None).await.unwrap();
    }
    for polls in 1..200 {
        let mut dropped = Box::pin(store.read_cell("a"));
        for _ in 0..polls % 8 {
            if polled(&mut dropped).await {
                break;
            }
        }
        drop(dropped);
        assert_eq!(read("b").await, b"b");
    }
}

/// Polls once and gives others their turn. Says whether it is done.
async fn polled<F: Future + Unpin>(future: &mut F) -> bool {
    let done = std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
    })
    .await;
    if !done {
        tokio::task::yield_now().await;
    }
    done
}

#[tokio::test]
async fn an_acquire_and_a_release_cost_two_round_trips_each() {
    let Some(server) = start_or_skip(servers::Memcached::start) else { return };
    let client = client(&server).await;
    client.lock("warm").acquire().await.unwrap().release().await.unwrap();
    let counted = || [server.count("cmd_get").unwrap(), server.count("cmd_set").unwrap()];
    let before = counted();
    let guard = client.lock("a").acquire().await.unwrap();
    let held = counted();
    guard.release().await.unwrap();
    let after = counted();
    let spent = |from: [u64; 2], to: [u64; 2]| [to[0] - from[0], to[1] - from[1]];
    println!("an acquire: {:?} gets and sets, a release: {:?}", spent(before, held), spent(held, after));
    assert_eq!(spent(before, held), [2, 1], "the time and the item in one request, then the write");
    assert_eq!(spent(held, after), [2, 1]);
}
