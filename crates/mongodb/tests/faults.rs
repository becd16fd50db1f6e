//! Bad servers and bad luck: a clear error, and nothing lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold_core::{
    Client, ErrorKind, MAX_NAME,
    backend::{Level, Severity},
};
use leasehold_mongodb::{Mongodb, MongodbConfig};
use leasehold_testkit::{
    herd::Herd,
    servers::{
        mongodb as servers,
        mongodb::{Value, fields},
        start_or_skip,
    },
};
use tokio::{runtime::Handle, task::JoinSet};

async fn client(url: &str) -> Client {
    Client::new(Mongodb::open(MongodbConfig::from_url(url).unwrap()).await.unwrap())
}

/// A URL with these credentials.
fn guarded(server: &servers::Mongodb, user: &str, password: &str) -> String {
    server.url().replace("mongodb://", &format!("mongodb://{user}:{password}@"))
        + "&authSource=admin&serverSelectionTimeoutMS=2000"
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_and_a_release_cost_one_request_each() {
    let Some(server) = start_or_skip(servers::Mongodb::start) else { return };
    let client = client(&server.url()).await;
    client.lock("warm").acquire().await.unwrap().release().await.unwrap();
    let counted = || {
        let writes = server.count("findAndModify").unwrap();
        let others = ["find", "aggregate", "insert", "update", "delete", "getMore"];
        [writes, others.iter().map(|name| server.count(name).unwrap()).sum()]
    };
    for name in ["fresh", "warm"] {
        let before = counted();
        let guard = client.lock(name).acquire().await.unwrap();
        let held = counted();
        guard.release().await.unwrap();
        let after = counted();
        let spent = |from: [i64; 2], to: [i64; 2]| [to[0] - from[0], to[1] - from[1]];
        println!("{name}: an acquire costs {:?}, a release {:?}", spent(before, held), spent(held, after));
        assert_eq!((spent(before, held), spent(held, after)), ([1, 0], [1, 0]), "{name}");
    }
}

/// Within one client the head of the line alone asks; among several, each has a head, and a release wakes those that the
/// document names.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_among_five_hundred_waiters_costs_a_few_requests() {
    let Some(set) = start_or_skip(servers::ReplicaSet::start) else { return };
    let primary = &set.members()[set.elected().unwrap()];
    // What the streams fetch is no request of a release: they are asked for more whether there is more or not.
    let counted = async || {
        let asked = ["findAndModify", "find", "aggregate"].iter().map(|name| primary.count(name).unwrap());
        u32::try_from(asked.sum::<i64>()).unwrap()
    };
    let one = [client(&set.url()).await];
    let each = Herd::default().requests_per_release(&one, "herd", async || true, counted).await;
    assert!(each <= 12.0, "{each}");
    let mut several = Vec::new();
    for _ in 0..10 {
        several.push(client(&set.url()).await);
    }
    let each = Herd::default().requests_per_release(&several, "herds", async || true, counted).await;
    assert!(each <= 50.0, "{each}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_and_missing_rights_are_denied_and_not_repeated() {
    let Some(server) = start_or_skip(servers::Mongodb::start_guarded) else { return };
    let (user, password) = (servers::Mongodb::USER, servers::Mongodb::PASSWORD);
    for url in [guarded(&server, user, "guessed"), guarded(&server, "nobody", "guessed"), server.url()] {
        let error = Mongodb::open(MongodbConfig::from_url(&url).unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!error.to_string().contains("guessed"), "{error}");
    }
    let owner = client(&guarded(&server, user, password)).await;
    owner.lock("a").acquire().await.unwrap().release().await.unwrap();
    // One who may only read.
    let driver = mongodb::Client::with_uri_str(guarded(&server, user, password)).await.unwrap();
    let reader = mongodb::bson::doc! {
        "createUser": "reader", "pwd": "pw", "roles": [{ "role": "read", "db": "leasehold" }],
    };
    driver.database("admin").run_command(reader).await.unwrap();
    let url = guarded(&server, "reader", "pw");
    let error = Mongodb::open(MongodbConfig::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(owner.inspect("a").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_unavailable_and_keeps_what_it_granted() {
    let Some(mut server) = start_or_skip(servers::Mongodb::start) else { return };
    let url = server.url() + "&serverSelectionTimeoutMS=500";
    let (client, other) = (client(&url).await, client(&url).await);
    let guard = client.lock("a").ttl("60s").acquire().await.unwrap();
    server.crash().unwrap();
    let error = loop {
        // A request that is on its way when the connection breaks is unknown; none is told of a lock.
        let error = other.lock("a").try_acquire().await.unwrap_err();
        if error.kind() != ErrorKind::Indeterminate {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let error = Mongodb::open(MongodbConfig::from_url(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    server.restart().unwrap();
    // It came back with all it had granted: the journal was written before the answer.
    let busy = loop {
        match other.lock("a").try_acquire().await {
            Ok(taken) => break taken.is_none(),
            Err(error) => assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Indeterminate)),
        }
    };
    assert!(busy, "a crash forgot a lock");
    let fence = guard.fence();
    guard.release().await.unwrap();
    assert!(other.lock("a").acquire().await.unwrap().fence() > fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_steps_down_or_dies_in_a_contended_run_costs_time_only() {
    let Some(mut set) = start_or_skip(servers::ReplicaSet::start) else { return };
    let url = set.url() + "&serverSelectionTimeoutMS=20000";
    let (last, inside, over) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let lock = client(&url).await.lock("contended").ttl("60s");
        let (last, inside, over) = (last.clone(), inside.clone(), over.clone());
        workers.spawn(async move {
            let mut held = 0_u32;
            while !over.load(Ordering::SeqCst) {
                let Ok(guard) = lock.acquire().await else { continue };
                assert!(!inside.swap(true, Ordering::SeqCst), "two hold one lock");
                let before = last.swap(guard.fence(), Ordering::SeqCst);
                assert!(before < guard.fence(), "{before} came before {}", guard.fence());
                tokio::task::yield_now().await;
                inside.store(false, Ordering::SeqCst);
                // To release is tried until it is done, and a hold that is gone was given back before.
                drop(guard.release().await);
                held += 1;
            }
            held
        });
    }
    let progress = async |from: u64| {
        while last.load(Ordering::SeqCst) <= from + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        last.load(Ordering::SeqCst)
    };
    let before = progress(last.load(Ordering::SeqCst)).await;
    let start = Instant::now();
    let new = set.step_down().unwrap();
    let before = progress(before.max(last.load(Ordering::SeqCst))).await;
    println!("a step-down: locks are granted again after {:?}", start.elapsed());
    let start = Instant::now();
    set.members_mut()[new].crash().unwrap();
    set.elected().unwrap();
    progress(before.max(last.load(Ordering::SeqCst))).await;
    println!("a killed primary: locks are granted again after {:?}", start.elapsed());
    set.members_mut()[new].restart().unwrap();
    over.store(true, Ordering::SeqCst);
    let held: u32 = workers.join_all().await.into_iter().sum();
    println!("{held} holds in all");
    assert!(held > 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_takes_no_writes_is_unavailable() {
    let Some(set) = start_or_skip(servers::ReplicaSet::start) else { return };
    let primary = set.elected().unwrap();
    let former = client(&set.members()[primary].url()).await;
    former.lock("a").acquire().await.unwrap().release().await.unwrap();
    for (member, server) in set.members().iter().enumerate().filter(|(member, _)| *member != primary) {
        let error = Mongodb::open(MongodbConfig::from_url(&server.url()).unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{member}: {error}");
    }
    set.step_down().unwrap();
    let error = loop {
        // It breaks connections when it steps down, and what was on its way there is unknown.
        let error = former.lock("a").try_acquire().await.unwrap_err();
        if error.kind() != ErrorKind::Indeterminate {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // Those who know all members are served meanwhile, and nothing is in their way.
    let client = client(&set.url()).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_majority_confirms_is_not_granted() {
    let Some(set) = start_or_skip(servers::ReplicaSet::start) else { return };
    let url = set.url() + "&command_timeout=2s";
    let client = client(&url).await;
    client.lock("a").acquire().await.unwrap().release().await.unwrap();
    let primary = set.elected().unwrap();
    let others: Vec<_> = (0..3).filter(|member| *member != primary).collect();
    for member in &others {
        set.members()[*member].pause().unwrap();
    }
    let error = client.lock("b").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Indeterminate | ErrorKind::Unavailable), "{error}");
    for member in &others {
        set.members()[*member].resume().unwrap();
    }
    // Nothing of it is left in anybody's way.
    client.lock("b").wait("50s").acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_and_the_strangest_names_are_locks_like_any_other() {
    let Some(server) = start_or_skip(servers::Mongodb::start) else { return };
    let (client, other) = (client(&server.url()).await, client(&server.url()).await);
    let long = "x".repeat(MAX_NAME);
    let twin = format!("{}y", &long[1..]);
    let names = [long.as_str(), &twin, "$name", "a.b", "$$NOW", "锁", " "];
    for name in names {
        let label = "$$ROOT";
        let guard = client.lock(name).label(label).try_acquire().await.unwrap().unwrap();
        assert!(other.lock(name).try_acquire().await.unwrap().is_none());
        let seen = other.inspect(name).await.unwrap().unwrap();
        assert_eq!((seen.name.as_str(), seen.holders[0].label.as_deref()), (name, Some(label)));
        guard.release().await.unwrap();
    }
    let error = client.lock(&"x".repeat(MAX_NAME + 1)).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_make_one_name_at_the_same_time_see_no_duplicate_key() {
    let Some(server) = start_or_skip(servers::Mongodb::start) else { return };
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(client(&server.url()).await);
    }
    for round in 0..20 {
        let name = format!("raced-{round}");
        let mut racing = JoinSet::new();
        for client in &clients {
            let lock = client.lock(&name);
            racing.spawn_on(async move { lock.try_acquire().await.unwrap() }, &Handle::current());
        }
        let won = racing.join_all().await.into_iter().flatten().count();
        assert_eq!(won, 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examination_tells_a_single_server_from_a_set() {
    let Some(server) = start_or_skip(servers::Mongodb::start) else { return };
    let single = client(&server.url()).await;
    assert_eq!(single.info().guarantee.level, Level::S1);
    let found = single.diagnose().await.unwrap();
    let severity = |topic: &str| found.iter().find(|finding| finding.topic == topic).unwrap().severity;
    assert_eq!(severity("members"), Severity::Warning);
    assert_eq!((severity("version"), severity("sweeping")), (Severity::Good, Severity::Good));
    let drop_index =
        fields([("dropIndexes", "locks".into()), ("index", "*".into()), ("$db", "leasehold".into())]);
    assert!(matches!(server.demand(&drop_index).unwrap(), Value::Fields(_)));
    let found = single.diagnose().await.unwrap();
    let sweeping = found.iter().find(|finding| finding.topic == "sweeping").unwrap();
    assert_eq!(sweeping.severity, Severity::Warning);
    let Some(set) = start_or_skip(servers::ReplicaSet::start) else { return };
    let replicated = client(&set.url()).await;
    assert_eq!(replicated.info().guarantee.level, Level::S3);
    let found = replicated.diagnose().await.unwrap();
    assert!(found.iter().all(|finding| finding.severity == Severity::Good), "{found:#?}");
}
