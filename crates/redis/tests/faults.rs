//! Bad servers and bad luck: a clear error, and nothing lost.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use common::{Stage, eventually, spawn, spec};
use leasehold_core::{
    Client, ErrorKind, Key, Owner,
    backend::{Attempt, Backend, BreakOutcome, Expect, Mode, Release, Shape},
};
use leasehold_redis::{Redis, RedisConfig};
use tokio::task::JoinSet;

#[tokio::test]
async fn forgotten_scripts_are_sent_again_on_every_path() {
    let Some(stage) = Stage::set().await else { return };
    let (client, store) = (stage.client().await, stage.store().await);
    let flush = async || stage.raw::<()>(&["SCRIPT", "FLUSH"]).await;
    let me = Owner::new();
    flush().await;
    let guard = client.lock("a").owner(&me).acquire().await.unwrap();
    flush().await;
    let again = client.lock("a").owner(&me).acquire().await.unwrap();
    flush().await;
    again.extend("40s").await.unwrap();
    flush().await;
    assert!(client.inspect("a").await.unwrap().is_some());
    flush().await;
    again.release().await.unwrap();
    flush().await;
    guard.release().await.unwrap();
    flush().await;
    let reader = client.rwlock("a").read().acquire().await.unwrap();
    flush().await;
    assert_eq!(client.break_hold("a", reader.id(), "x").await.unwrap(), BreakOutcome::Broken);
    flush().await;
    let permits = client.semaphore("s", 3).permits(2).acquire().await.unwrap();
    flush().await;
    permits.release().await.unwrap();
    flush().await;
    client.latch("l").arm(1).await.unwrap();
    flush().await;
    let _written = store.write_cell("c", Expect::Absent, b"x", None).await.unwrap();
    flush().await;
    // The break above has left one in the audit.
    let cells = store.list_cells("", None, 10).await.unwrap().cells;
    assert_eq!(cells.iter().filter(|cell| !cell.name.starts_with("audit:")).count(), 1);
    assert_eq!(cells.len(), 2);
}

#[tokio::test]
async fn a_killed_connection_is_made_anew_without_anybody_noticing() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    for _ in 0..5 {
        let guard = client.lock("k").acquire().await.unwrap();
        let mut bare = stage.bare.clone();
        let killed: u32 = redis::cmd("CLIENT")
            .arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"])
            .query_async(&mut bare)
            .await
            .unwrap();
        assert!(killed >= 1);
        // The end of a connection is told to the client by itself; until then a request may be lost on it.
        eventually(async || client.inspect("k").await.is_ok()).await;
        guard.check().unwrap();
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn one_who_waits_is_woken_though_its_connections_are_killed() {
    let Some(stage) = Stage::set().await else { return };
    let (client, other) = (stage.client().await, stage.client().await);
    for kind in ["pubsub", "normal"] {
        let holder = other.lock("k").ttl("1h").acquire().await.unwrap();
        let lock = client.lock("k");
        let waiting = spawn(async move { lock.acquire().await.unwrap() });
        eventually(async || {
            !stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.is_empty()
        })
        .await;
        for _ in 0..3 {
            let mut bare = stage.bare.clone();
            let _killed: u32 = redis::cmd("CLIENT")
                .arg(&["KILL", "TYPE", kind, "SKIPME", "yes"])
                .query_async(&mut bare)
                .await
                .unwrap();
        }
        eventually(async || other.inspect("k").await.is_ok()).await;
        holder.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_wrong_password_is_denied() {
    let Some(stage) = Stage::set().await else { return };
    stage.raw::<()>(&["CONFIG", "SET", "requirepass", "right"]).await;
    for config in [stage.config(), stage.config().with_password("wrong")] {
        let error = Redis::open(config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!error.to_string().contains("wrong\""), "{error}");
    }
    let store = Redis::open(stage.config().with_password("right")).await.unwrap();
    Client::new(store).lock("x").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_user_without_rights_is_denied() {
    let Some(stage) = Stage::set().await else { return };
    stage.raw::<()>(&["ACL", "SETUSER", "eve", "on", ">pw", "~app:*", "&*", "+@all"]).await;
    let config = stage.config().with_username("eve").with_password("pw");
    let client = Client::new(Redis::open(config).await.unwrap());
    let error = client.lock("other").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let Some(mut stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let guard = client.lock("x").acquire().await.unwrap();
    stage.server.crash().unwrap();
    eventually(async || {
        let error = client.lock("y").try_acquire().await.unwrap_err();
        // The first may have been on its way when the server went.
        error.kind() == ErrorKind::Unavailable
    })
    .await;
    assert_eq!(Redis::open(stage.config()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    guard.check().unwrap();
    stage.server.restart().unwrap();
    eventually(async || client.lock("y").try_acquire().await.is_ok()).await;
}

#[tokio::test]
async fn a_full_server_still_takes_renewals_and_releases() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let me = Owner::new();
    let lock = client.lock("lock").acquire().await.unwrap();
    let labelled = client.lock("labelled").label("x").acquire().await.unwrap();
    let entered = client.lock("entered").owner(&me).acquire().await.unwrap();
    let again = client.lock("entered").owner(&me).acquire().await.unwrap();
    let readers = [
        client.rwlock("rw").read().acquire().await.unwrap(),
        client.rwlock("rw").read().acquire().await.unwrap(),
    ];
    let writer = client.rwlock("w").write().acquire().await.unwrap();
    let permits = client.semaphore("s", 3).permits(2).acquire().await.unwrap();
    let plain = client.lock("p").plain().acquire().await.unwrap();
    stage.raw::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = client.lock("new").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    again.release().await.unwrap();
    let guards = [lock, labelled, entered, writer, permits, plain].into_iter().chain(readers);
    for guard in guards {
        guard.extend("50s").await.unwrap();
        guard.release().await.unwrap();
    }
    stage.raw::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    for name in ["lock", "labelled", "entered", "rw", "w", "s", "p"] {
        assert!(client.inspect(name).await.unwrap().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_read_only_server_is_unavailable() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    stage.raw::<()>(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    stage.raw::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    client.lock("x").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn an_attempt_that_arrives_after_the_release_wins_nothing() {
    let Some(stage) = Stage::set().await else { return };
    let config = stage.config().with_command_timeout(Duration::from_millis(150));
    let permits = Mode::Permits { take: 2.try_into().unwrap(), of: 3.try_into().unwrap() };
    let forms = [
        (Mode::Exclusive, Shape::Lock),
        (Mode::Exclusive, Shape::ReadWrite),
        (Mode::Exclusive, Shape::Plain),
        (Mode::Shared, Shape::ReadWrite),
        (permits, Shape::Lock),
    ];
    for (number, (mode, shape)) in forms.into_iter().enumerate() {
        let store = Redis::open(config.clone()).await.unwrap();
        let name = format!("late-{number}");
        let asked = spec(&name, mode, shape);
        let mut claim = store.claim(asked.clone());
        stage.server.pause().unwrap();
        assert_eq!(claim.attempt().await.unwrap_err().kind(), ErrorKind::Indeterminate);
        stage.server.resume().unwrap();
        // It was in the server's buffer and is carried out now, before the release or after.
        eventually(async || claim_released(&store, &asked).await).await;
        let released = loop {
            if let Ok(released) = claim.release().await {
                break released;
            }
        };
        assert!(matches!(released, Release::Released | Release::Gone(None)));
        let mut late = store.claim(asked);
        assert!(matches!(late.attempt().await.unwrap(), Attempt::Busy(_)), "{mode:?} was won late");
        let left = store.inspect(&Key::new("", &name).unwrap()).await.unwrap();
        assert!(left.is_none(), "{left:?}");
    }
}

/// Whether the server answers again.
async fn claim_released(store: &Redis, asked: &leasehold_core::backend::ClaimSpec) -> bool {
    store.inspect(&asked.key).await.is_ok()
}

#[tokio::test]
async fn a_server_that_does_not_answer_leaves_it_unknown() {
    let Some(stage) = Stage::set().await else { return };
    let config = stage.config().with_command_timeout(Duration::from_millis(100));
    let client = Client::new(Redis::open(config).await.unwrap());
    let guard = client.lock("held").acquire().await.unwrap();
    stage.server.pause().unwrap();
    assert_eq!(guard.extend("40s").await.unwrap_err().kind(), ErrorKind::Indeterminate);
    guard.check().unwrap();
    stage.server.resume().unwrap();
    eventually(async || guard.extend("40s").await.is_ok()).await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_is_refused_at_once() {
    let Some(stage) = Stage::set().await else { return };
    let error = Redis::open(stage.config().with_wait_replicas(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let tls = RedisConfig::from_url(&stage.server.url().replace("redis:", "rediss:")).unwrap();
    let tls = tls.with_connect_timeout(Duration::from_secs(2));
    assert_eq!(Redis::open(tls).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contended_lock_survives_kills_and_flushes() {
    let Some(stage) = Stage::set().await else { return };
    let clients = [stage.client().await, stage.client().await];
    let inside = Arc::new(AtomicBool::new(false));
    let last = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let (lock, inside, last) = (clients[task % 2].lock("storm"), inside.clone(), last.clone());
        let lock = if task < 2 { lock.fair() } else { lock };
        tasks.spawn(async move {
            for _ in 0..25 {
                let guard = lock.acquire().await.unwrap();
                assert!(!inside.swap(true, Ordering::SeqCst), "two at once");
                assert!(last.swap(guard.fence(), Ordering::SeqCst) < guard.fence(), "a fence went back");
                tokio::task::yield_now().await;
                inside.store(false, Ordering::SeqCst);
                // One that could not be told is told in the background.
                drop(guard.release().await);
            }
        });
    }
    let mut bare = stage.bare.clone();
    let storm = spawn(async move {
        for round in 0.. {
            let kind = if round % 2 == 0 { "pubsub" } else { "normal" };
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", kind, "SKIPME", "yes"]);
            kill.query_async::<u32>(&mut bare).await.unwrap();
            redis::cmd("SCRIPT").arg("FLUSH").query_async::<()>(&mut bare).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    storm.abort();
    for client in &clients {
        client.idle().await;
    }
    eventually(async || clients[0].inspect("storm").await.is_ok_and(|state| state.is_none())).await;
}
