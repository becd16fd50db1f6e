//! What is in Redis, byte for byte: as Redisson leaves it and finds it.

mod common;

use std::collections::BTreeMap;

use common::{Stage, eventually, java, spawn};
use leasehold_core::{ErrorKind, Outcome, Owner, backend::BreakOutcome};
use leasehold_redis::{Layout, Redis};

#[tokio::test]
async fn a_lock_is_redissons_hash_and_our_fence() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages) = (stage.client().await, stage.listen().await);
    let guard = client.lock("order").ttl("30s").acquire().await.unwrap();
    let id = guard.id().to_string();
    let fields: BTreeMap<String, String> = stage.raw(&["HGETALL", "order"]).await;
    assert_eq!(fields, BTreeMap::from([(id, "1".to_owned())]));
    let who = format!("leasehold_who:{}", client.who().client);
    assert_eq!(stage.keys().await, ["leasehold_fence:{order}", &who, "order"]);
    let left: u64 = stage.raw(&["PTTL", "order"]).await;
    assert!((29_000..=30_000).contains(&left), "{left}");
    assert_eq!(stage.raw::<u64>(&["GET", "leasehold_fence:{order}"]).await, guard.fence());
    assert!(stage.raw::<u64>(&["PTTL", "leasehold_fence:{order}"]).await > 86_400_000);
    guard.release().await.unwrap();
    assert_eq!(messages.next().await, ("redisson_lock__channel:{order}".to_owned(), "0".to_owned()));
    assert_eq!(stage.keys().await, ["leasehold_fence:{order}", &who]);
}

#[tokio::test]
async fn re_entry_is_redissons_count() {
    let Some(stage) = Stage::set().await else { return };
    let (client, me) = (stage.client().await, Owner::new());
    let lock = client.lock("again").owner(&me);
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    let id = outer.id().to_string();
    assert_eq!(stage.raw::<u32>(&["HGET", "again", &id]).await, 2);
    assert_eq!(outer.fence(), inner.fence());
    inner.release().await.unwrap();
    assert_eq!(stage.raw::<u32>(&["HGET", "again", &id]).await, 1);
    outer.release().await.unwrap();
    assert!(!stage.raw::<bool>(&["EXISTS", "again"]).await);
}

#[tokio::test]
async fn names_with_braces_follow_redissons_rule() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages) = (stage.client().await, stage.listen().await);
    for (name, tag) in [("a{b}c", "a{b}c"), ("{x}", "{x}"), ("a}b", "{a}b}"), ("锁", "{锁}"), ("a{b", "a{b")]
    {
        let guard = client.lock(name).acquire().await.unwrap();
        let fence: u64 = stage.raw(&["GET", &format!("leasehold_fence:{tag}")]).await;
        assert_eq!(fence, guard.fence());
        guard.release().await.unwrap();
        assert_eq!(messages.next().await.0, format!("redisson_lock__channel:{tag}"));
        let guard = client.rwlock(name).read().acquire().await.unwrap();
        let id = guard.id();
        assert_eq!(stage.raw::<String>(&["GET", &format!("{tag}:{id}:rwlock_timeout:1")]).await, "1");
        guard.release().await.unwrap();
        assert_eq!(messages.next().await.0, format!("redisson_rwlock:{tag}"));
    }
}

#[tokio::test]
async fn a_fenced_lock_shares_its_token_with_java() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let mut last = 0;
    for _ in 0..3 {
        let guard = client.lock("f").fenced().acquire().await.unwrap();
        assert!(guard.fence() > last);
        last = guard.fence();
        let token: u64 = stage.raw(&["GET", "redisson_lock_token:{f}"]).await;
        assert_eq!((token, stage.raw::<i64>(&["PTTL", "redisson_lock_token:{f}"]).await), (last, -1));
        guard.release().await.unwrap();
        // Java goes on counting, far ahead.
        last = stage.raw(&["INCRBY", "redisson_lock_token:{f}", "9000000000"]).await;
    }
    let guard = client.lock("f").fenced().acquire().await.unwrap();
    assert!(guard.fence() > last);
}

#[tokio::test]
async fn readers_have_a_timeout_key_for_each_hold() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages, me) = (stage.client().await, stage.listen().await, Owner::new());
    let read = client.rwlock("rw").read().owner(&me);
    let (one, two) = (read.acquire().await.unwrap(), read.acquire().await.unwrap());
    let id = one.id().to_string();
    let fields: BTreeMap<String, String> = stage.raw(&["HGETALL", "rw"]).await;
    assert_eq!(fields, BTreeMap::from([("mode".into(), "read".into()), (id.clone(), "2".into())]));
    for hold in 1..=2 {
        let key = format!("{{rw}}:{id}:rwlock_timeout:{hold}");
        assert_eq!(stage.raw::<String>(&["GET", &key]).await, "1");
        assert!(stage.raw::<i64>(&["PTTL", &key]).await > 0);
    }
    drop(two);
    client.idle().await;
    assert!(!stage.raw::<bool>(&["EXISTS", &format!("{{rw}}:{id}:rwlock_timeout:2")]).await);
    one.release().await.unwrap();
    assert_eq!(messages.next().await, ("redisson_rwlock:{rw}".to_owned(), "0".to_owned()));
    let left = stage.keys().await;
    assert!(
        left.iter().all(|key| key.starts_with("leasehold_fence") || key.starts_with("leasehold_who")),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_writer_has_its_own_field_and_may_become_a_reader() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages, me) = (stage.client().await, stage.listen().await, Owner::new());
    let rwlock = client.rwlock("w");
    let writer = rwlock.write().owner(&me).ttl("20s").acquire().await.unwrap();
    let id = writer.id().to_string();
    let fields: BTreeMap<String, String> = stage.raw(&["HGETALL", "w"]).await;
    assert_eq!(
        fields,
        BTreeMap::from([("mode".into(), "write".into()), (format!("{id}:write"), "1".into())])
    );
    let again = rwlock.write().owner(&me).ttl("20s").acquire().await.unwrap();
    assert!(stage.raw::<u64>(&["PTTL", "w"]).await <= 20_000, "re-entry does not stretch the lease");
    again.release().await.unwrap();
    let reader = rwlock.read().owner(&me).acquire().await.unwrap();
    writer.release().await.unwrap();
    let fields: BTreeMap<String, String> = stage.raw(&["HGETALL", "w"]).await;
    assert_eq!(fields, BTreeMap::from([("mode".into(), "read".into()), (id.clone(), "1".into())]));
    // `1` wakes all who sleep, `0` one who is about to.
    for message in ["1", "0"] {
        assert_eq!(messages.next().await, ("redisson_rwlock:{w}".to_owned(), message.to_owned()));
    }
    reader.release().await.unwrap();
    assert_eq!(messages.next().await.1, "0");
    let writer = rwlock.write().acquire().await.unwrap();
    writer.release().await.unwrap();
    for message in ["1", "0"] {
        assert_eq!(messages.next().await, ("redisson_rwlock:{w}".to_owned(), message.to_owned()));
    }
    let reader = rwlock.read().acquire().await.unwrap();
    reader.release().await.unwrap();
    assert_eq!(messages.next().await.1, "0", "and nothing more than that");
}

#[tokio::test]
async fn one_who_waits_for_java_is_woken_by_javas_message() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    for (mode, channel, message) in [
        (None, "redisson_lock__channel:{j}", "0"),
        (Some("write"), "redisson_rwlock:{j}", "1"),
        (Some("read"), "redisson_rwlock:{j}", "0"),
    ] {
        let holder = java();
        let field = if mode == Some("write") { format!("{holder}:write") } else { holder.clone() };
        stage.raw::<u32>(&["HSET", "j", &field, "1"]).await;
        if let Some(mode) = mode {
            stage.raw::<u32>(&["HSET", "j", "mode", mode]).await;
            stage
                .raw::<()>(&["SET", &format!("{{j}}:{holder}:rwlock_timeout:1"), "1", "PX", "3600000"])
                .await;
        }
        stage.raw::<u32>(&["PEXPIRE", "j", "3600000"]).await;
        let Outcome::Busy(busy) = client.lock("j").attempt().await.unwrap() else { panic!("Java holds it") };
        assert_eq!((busy.holders[0].id.to_string(), busy.holders[0].count), (holder, 1));
        assert_eq!(&*busy.holders[0].who.program, "another program");
        let lock = client.lock("j");
        let waiting = spawn(async move { lock.acquire().await.unwrap() });
        eventually(async || {
            !stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.is_empty()
        })
        .await;
        stage.raw::<u32>(&["DEL", "j"]).await;
        assert!(stage.raw::<u32>(&["PUBLISH", channel, message]).await >= 1);
        waiting.await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn readers_respect_a_plain_redisson_lock() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    stage.raw::<u32>(&["HSET", "r", &java(), "1"]).await;
    stage.raw::<u32>(&["PEXPIRE", "r", "60000"]).await;
    assert!(client.rwlock("r").read().try_acquire().await.unwrap().is_none());
    assert!(client.rwlock("r").write().try_acquire().await.unwrap().is_none());
}

#[tokio::test]
async fn the_fair_line_is_redissons_list_and_scores() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    let holder = client.lock("q").fair().acquire().await.unwrap();
    let mut waiting = Vec::new();
    for place in 1..=2 {
        let lock = client.lock("q").fair();
        waiting.push(spawn(async move { lock.acquire().await.unwrap() }));
        eventually(async || stage.raw::<usize>(&["LLEN", "redisson_lock_queue:{q}"]).await == place).await;
    }
    let line: Vec<String> = stage.raw(&["LRANGE", "redisson_lock_queue:{q}", "0", "-1"]).await;
    let scores: BTreeMap<String, f64> =
        stage.raw(&["ZRANGE", "redisson_lock_timeout:{q}", "0", "-1", "WITHSCORES"]).await;
    let step = scores[&line[1]] - scores[&line[0]];
    assert_eq!((scores.len(), step as i64), (2, 300_000), "as Redisson reckons with its usual wait");
    let mut messages = stage.listen().await;
    holder.release().await.unwrap();
    assert_eq!(messages.next().await, (format!("redisson_lock__channel:{{q}}:{}", line[0]), "0".to_owned()));
    let first = waiting.remove(0).await.unwrap();
    assert_eq!(first.id().to_string(), line[0]);
    first.release().await.unwrap();
    waiting.remove(0).await.unwrap().release().await.unwrap();
    assert!(!stage.raw::<bool>(&["EXISTS", "redisson_lock_queue:{q}", "redisson_lock_timeout:{q}"]).await);
}

#[tokio::test]
async fn a_java_waiter_in_line_is_served_first_and_told() {
    let Some(stage) = Stage::set().await else { return };
    let (client, waiter) = (stage.client().await, java());
    let holder = client.lock("jq").fair().acquire().await.unwrap();
    let time: Vec<String> = stage.raw(&["TIME"]).await;
    let score = format!("{}000", time[0].parse::<u64>().unwrap() + 400);
    stage.raw::<u32>(&["RPUSH", "redisson_lock_queue:{jq}", &waiter]).await;
    stage.raw::<u32>(&["ZADD", "redisson_lock_timeout:{jq}", &score, &waiter]).await;
    let mut messages = stage.listen().await;
    holder.release().await.unwrap();
    assert_eq!(messages.next().await.0, format!("redisson_lock__channel:{{jq}}:{waiter}"));
    assert!(client.lock("jq").try_acquire().await.unwrap().is_none(), "it is Java's turn");
    stage.raw::<u32>(&["DEL", "redisson_lock_queue:{jq}", "redisson_lock_timeout:{jq}"]).await;
    assert!(client.lock("jq").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn permits_are_sixteen_bytes_with_a_score() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages) = (stage.client().await, stage.listen().await);
    let guard = client.semaphore("s", 5).permits(2).acquire().await.unwrap();
    assert_eq!(stage.raw::<i64>(&["GET", "s"]).await, 3);
    let members: Vec<Vec<u8>> = stage.raw(&["ZRANGE", "{s}:timeout", "0", "-1"]).await;
    assert_eq!(members.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16]);
    guard.release().await.unwrap();
    assert_eq!(messages.next().await, ("redisson_sc:{s}".to_owned(), "5".to_owned()));
    assert!(!stage.raw::<bool>(&["EXISTS", "{s}:timeout"]).await);
    assert!(client.inspect("s").await.unwrap().is_none(), "nobody uses it");
    assert!(stage.raw::<i64>(&["PTTL", "s"]).await > 0, "and it goes by itself");
}

#[tokio::test]
async fn a_semaphore_made_by_java_stays_javas() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    stage.raw::<()>(&["SET", "js", "3"]).await;
    let guard = client.semaphore("js", 3).permits(2).acquire().await.unwrap();
    let error = client.semaphore("js", 4).permits(1).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("a semaphore of 3"), "{error}");
    guard.release().await.unwrap();
    assert_eq!((stage.raw::<i64>(&["GET", "js"]).await, stage.raw::<i64>(&["PTTL", "js"]).await), (3, -1));
    // A permit of Java's that has run out comes back.
    stage.raw::<i64>(&["DECRBY", "js", "3"]).await;
    for member in ["0123456789abcdef", "1123456789abcdef", "2123456789abcdef"] {
        stage.raw::<u32>(&["ZADD", "{js}:timeout", "1000", member]).await;
    }
    assert!(client.semaphore("js", 3).permits(3).try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_latch_is_a_count_and_tells_its_channel() {
    let Some(stage) = Stage::set().await else { return };
    let (client, mut messages) = (stage.client().await, stage.listen().await);
    let channel = "redisson_countdownlatch__channel__{x{l}}";
    let latch = client.latch("x{l}");
    assert!(latch.arm(2).await.unwrap());
    assert_eq!(messages.next().await, (channel.to_owned(), "1".to_owned()));
    assert_eq!(
        (stage.raw::<i64>(&["GET", "x{l}"]).await, stage.raw::<i64>(&["PTTL", "x{l}"]).await),
        (2, -1)
    );
    latch.count_down().await.unwrap();
    // Java counts the last one down.
    let waiting = spawn(async move { latch.wait().await.unwrap() });
    eventually(async || {
        stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS", "redisson_*"]).await.contains(&channel.to_owned())
    })
    .await;
    stage.raw::<u32>(&["DEL", "x{l}"]).await;
    stage.raw::<u32>(&["PUBLISH", channel, "0"]).await;
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_plain_lock_is_one_value() {
    let Some(stage) = Stage::set().await else { return };
    let client =
        leasehold_core::Client::new(Redis::open(stage.config().with_layout(Layout::Plain)).await.unwrap());
    let mut messages = stage.listen().await;
    let guard = client.lock("p").ttl("20s").acquire().await.unwrap();
    assert_eq!(stage.raw::<String>(&["GET", "p"]).await, guard.id().to_string());
    assert!(stage.raw::<u64>(&["PTTL", "p"]).await <= 20_000);
    guard.extend("40s").await.unwrap();
    assert!(stage.raw::<u64>(&["PTTL", "p"]).await > 20_000);
    guard.release().await.unwrap();
    assert_eq!(messages.next().await, ("redisson_lock__channel:{p}".to_owned(), "0".to_owned()));
    // Somebody else's lock, made by hand.
    stage.raw::<()>(&["SET", "p", "worker-1", "NX", "PX", "60000"]).await;
    let Outcome::Busy(busy) = client.lock("p").attempt().await.unwrap() else { panic!("worker-1 holds it") };
    let id = busy.holders[0].id;
    assert_eq!(client.inspect("p").await.unwrap().unwrap().holders[0].id, id);
    assert_eq!(client.break_hold("p", id, "it hangs").await.unwrap(), BreakOutcome::Broken);
    assert!(client.lock("p").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn what_is_no_lock_is_named_and_left_alone() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    stage.raw::<u32>(&["RPUSH", "list", "x"]).await;
    stage.raw::<u32>(&["HSET", "limiter", "rate", "5", "interval", "1000", "type", "0"]).await;
    stage.raw::<()>(&["SET", "plain", "worker-1", "PX", "60000"]).await;
    for (name, found) in [("list", "a list"), ("limiter", "a rate limiter"), ("plain", "a plain lock")] {
        let asked = [client.lock(name), client.rwlock(name).read(), client.semaphore(name, 2).permits(1)];
        for lock in asked {
            let error = lock.try_acquire().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert!(error.to_string().contains(found), "{error}");
        }
        assert_eq!(client.latch(name).arm(1).await.unwrap_err().kind(), ErrorKind::Conflict);
        assert!(stage.raw::<bool>(&["EXISTS", name]).await);
    }
    let guard = client.lock("hash").acquire().await.unwrap();
    let error = client.lock("hash").plain().try_acquire().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("a lock"), "{error}");
    guard.release().await.unwrap();
    stage.raw::<u32>(&["HSET", "users:1", "name", "Eve"]).await;
    assert!(client.list("", None, 100).await.unwrap().locks.is_empty(), "nothing of these is a lock");
}
