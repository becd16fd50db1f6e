//! Checks that need a Redis: small scenes on servers of their own, judged by the history where it shows in one.
//!
//! Each says `false` if its server may be missing and is.

use std::time::Duration;

use leasehold::{
    Client, ErrorKind,
    backend::{Attempt, Backend, Release},
    time::Clock,
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    faultline::{Faultline, Speech},
    history,
    scripted::{Script, Scripted},
    servers::{
        redis::{Redis as Server, Replicated},
        start_or_skip,
    },
};

use crate::scene::{Scene, moment, spec, stand};

/// How often a look is repeated, ten milliseconds apart: at what must not come, and at what must.
const LOOKS: usize = 100;
const PATIENCE: usize = 2000;

const LEASE: Duration = Duration::from_secs(30);

async fn store(url: &str) -> Scripted {
    let config = RedisConfig::from_url(url).unwrap().with_command_timeout(Duration::from_secs(1));
    Scripted::new(Redis::open(config).await.unwrap(), Script::new())
}

async fn client(url: &str) -> Client {
    Client::new(store(url).await)
}

/// One whose lease is over releases what is another's by now.
pub(crate) async fn a_late_release_frees_nobody_else() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let clients = [client(&server.url()).await, client(&server.url()).await, client(&server.url()).await];
    let (scene, mode) = (Scene::new(Clock::boot()), history::Mode::Exclusive);
    let brief = clients[0].lock("name").ttl("200ms").no_renew();
    let late = scene.take(&brief, 1, mode).await.unwrap();
    late.lost().await;
    let _next = scene.take(&clients[1].lock("name").wait("5s"), 2, mode).await.unwrap();
    assert_eq!(late.release().await.unwrap_err().kind(), ErrorKind::Lost);
    scene.take(&clients[2].lock("name"), 3, mode).await;
    scene.is_sound();
    true
}

/// A reader with a short lease joins one with a long lease: a writer waits for the longer.
pub(crate) async fn the_longest_reader_counts() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let clients = [client(&server.url()).await, client(&server.url()).await, client(&server.url()).await];
    let scene = Scene::new(Clock::boot());
    let read = |client: &Client, ttl: &str| client.rwlock("name").read().ttl(ttl).no_renew();
    let long = scene.take(&read(&clients[0], "20s"), 1, history::Mode::Shared).await.unwrap();
    let short = scene.take(&read(&clients[1], "200ms"), 2, history::Mode::Shared).await.unwrap();
    short.lost().await;
    let write = clients[2].rwlock("name").write();
    for _ in 0..LOOKS {
        if scene.take(&write, 3, history::Mode::Exclusive).await.is_some() {
            break;
        }
        moment().await;
    }
    long.check().unwrap();
    scene.is_sound();
    true
}

/// The answer to a release of permits is lost, so it is repeated: there are no more permits than before.
pub(crate) async fn permits_come_back_once() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let line = Faultline::before(server.address(), Speech::Resp).unwrap();
    let [near, far] = [client(&server.url()).await, client(&format!("redis://{}", line.address())).await];
    let _first = near.semaphore("name", 2).acquire().await.unwrap();
    // Twice, so that every script is known to the server and the next request is the one that counts.
    far.semaphore("name", 2).acquire().await.unwrap().release().await.unwrap();
    let second = far.semaphore("name", 2).acquire().await.unwrap();
    let hit = line.swallow_reply(b"EVALSHA", 1);
    drop(second);
    far.idle().await;
    assert_eq!(hit.times(), 1);
    let taken = near.semaphore("name", 2).permits(1).try_acquire().await;
    let taken = taken.unwrap_or_else(|error| panic!("permits were made of nothing: {error}"));
    assert!(taken.is_some(), "the permit did not come back");
    assert!(
        near.semaphore("name", 2).permits(1).try_acquire().await.unwrap().is_none(),
        "there are two, and three are out"
    );
    true
}

/// A primary that was replaced grants once more, and goes: the next grant of the new one has a greater fence.
pub(crate) async fn fences_grow_across_a_failover() -> bool {
    let Some(mut servers) = start_or_skip(|| Replicated::start(1)) else { return false };
    let (scene, mode) = (Scene::new(Clock::boot()), history::Mode::Exclusive);
    let first = client(&servers.url()).await;
    servers.promote(1).unwrap();
    let guard = scene.take(&first.lock("name"), 1, mode).await.unwrap();
    scene.release(guard, 1).await;
    servers.members_mut()[0].crash().unwrap();
    let second = client(&servers.url()).await;
    let _guard = scene.take(&second.lock("name"), 2, mode).await.unwrap();
    scene.is_sound();
    true
}

/// Two replicas are to confirm, and one of them is gone: nothing is granted.
pub(crate) async fn a_missing_replica_is_missed() -> bool {
    let Some(mut servers) = start_or_skip(|| Replicated::start(2)) else { return false };
    let client = client(&format!("{}?wait_replicas=2&replica_timeout=2s", servers.url())).await;
    client.lock("name").acquire().await.unwrap().release().await.unwrap();
    servers.members_mut()[2].crash().unwrap();
    let connected = || servers.primary().info("connected_slaves").unwrap();
    for _ in 0..PATIENCE {
        if connected().as_deref() == Some("1") {
            break;
        }
        moment().await;
    }
    assert_eq!(connected().as_deref(), Some("1"), "the primary has not noticed that a replica is gone");
    let granted = client.lock("name").try_acquire().await;
    assert!(granted.is_err(), "granted, though one of two replicas cannot have it");
    true
}

/// The server forgets its scripts: the next request is none the worse for it.
pub(crate) async fn a_forgotten_script_is_sent_again() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let client = client(&server.url()).await;
    // What fails the first time is asked again, so this says only that the server can be used.
    drop(client.lock("other").wait("5s").acquire().await.unwrap());
    client.idle().await;
    server.demand(&["SCRIPT", "FLUSH"]).unwrap();
    let tried = client.lock("name").try_acquire().await;
    let tried = tried.unwrap_or_else(|error| panic!("a refusal is no silence: {error}"));
    assert!(tried.is_some(), "nobody has it");
    true
}

/// It is released between the look and the arming of the bell: whoever waits is told to look again.
pub(crate) async fn a_release_before_the_bell_is_armed_is_heard() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let store = store(&server.url()).await;
    let [mut holder, mut waiter] = ["a", "b"].map(|id| store.claim(spec(id, LEASE)));
    assert!(matches!(holder.attempt().await.unwrap(), Attempt::Granted(_)));
    assert!(matches!(waiter.attempt().await.unwrap(), Attempt::Busy(_)));
    let _: Release = holder.release().await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(5), waiter.changed()).await;
    assert!(told.is_ok(), "it is free, and the one who waits for it sleeps on");
    true
}

/// Two stand in line, and their clients' clocks differ by a minute: the first stays the first.
pub(crate) async fn the_line_goes_by_one_clock() -> bool {
    let Some(server) = start_or_skip(Server::start) else { return false };
    let store = store(&server.url()).await;
    let [mut holder, mut first, mut second] = ["0a", "0b", "1c"].map(|id| store.claim(spec(id, LEASE)));
    assert!(matches!(holder.attempt().await.unwrap(), Attempt::Granted(_)));
    stand(&mut *first).await;
    stand(&mut *second).await;
    let _: Release = holder.release().await.unwrap();
    let overtakes = matches!(second.attempt().await.unwrap(), Attempt::Granted(_));
    assert!(!overtakes, "the second was served before the first");
    assert!(matches!(first.attempt().await.unwrap(), Attempt::Granted(_)));
    true
}
