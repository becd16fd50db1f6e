//! What doctor finds: one server for each thing that can be wrong with it, and a good one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod common;

use common::{Stage, eventually};
use leasehold_core::{
    Client, ErrorKind,
    backend::{Backend, BreakOutcome, Finding, Severity},
};
use leasehold_redis::{Redis, RedisConfig};
use leasehold_testkit::{
    conformance::Fixture,
    servers::{Shared, redis as servers, start_or_skip},
};

/// What is found about one topic.
async fn found(stage: &Stage, topic: &str) -> Option<Finding> {
    let findings = stage.client().await.diagnose().await.unwrap();
    findings.into_iter().find(|finding| finding.topic == topic)
}

/// What is found about one topic once a setting is changed.
async fn after(settings: &[(&str, &str)], topic: &str) -> Option<Option<Finding>> {
    let stage = Stage::set().await?;
    for (setting, value) in settings {
        stage.raw::<()>(&["CONFIG", "SET", setting, value]).await;
    }
    Some(found(&stage, topic).await)
}

fn severity(found: Option<&Finding>) -> Option<Severity> {
    found.map(|finding| finding.severity)
}

#[tokio::test]
async fn a_server_that_is_set_up_well_gives_nothing_worse_than_good() {
    let Some(server) = start_or_skip(servers::Redis::start_durable) else { return };
    let client = Client::new(Redis::open(RedisConfig::from_url(&server.url()).unwrap()).await.unwrap());
    let findings = client.diagnose().await.unwrap();
    let worse: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Good).collect();
    assert!(worse.is_empty(), "{worse:#?}");
    let mut topics: Vec<_> = findings.iter().map(|finding| finding.topic).collect();
    topics.sort_unstable();
    assert_eq!(topics, ["clock-offset", "eviction", "permissions", "persistence", "server-version"]);
}

#[tokio::test]
async fn an_examination_leaves_nothing_behind() {
    let Some(stage) = Stage::set().await else { return };
    stage.client().await.diagnose().await.unwrap();
    assert_eq!(stage.keys().await, [""; 0]);
    eventually(async || stage.raw::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await.is_empty()).await;
}

#[tokio::test]
async fn eviction_is_told() {
    let settings = [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")];
    let Some(finding) = after(&settings, "eviction").await else { return };
    assert_eq!(severity(finding.as_ref()), Some(Severity::Danger), "{finding:?}");
    let Some(finding) = after(&settings[1..], "eviction").await else { return };
    assert_eq!(severity(finding.as_ref()), Some(Severity::Warning), "{finding:?}");
}

#[tokio::test]
async fn memory_that_is_nearly_full_is_told() {
    let Some(stage) = Stage::set().await else { return };
    assert_eq!(found(&stage, "memory").await, None);
    stage.raw::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    // A server this full refuses even the probe; it is still examined.
    let finding = found(&stage, "memory").await;
    assert_eq!(severity(finding.as_ref()), Some(Severity::Warning), "{finding:?}");
}

#[tokio::test]
async fn what_a_restart_forgets_is_told() {
    let Some(nothing) = after(&[], "persistence").await else { return };
    assert_eq!(severity(nothing.as_ref()), Some(Severity::Warning), "{nothing:?}");
    assert!(nothing.unwrap().what.contains("nothing is kept"));
    let snapshots = after(&[("save", "3600 1")], "persistence").await.unwrap();
    assert!(snapshots.unwrap().what.contains("only snapshots"));
    let log = [("appendonly", "yes"), ("appendfsync", "everysec")];
    let lazy = after(&log, "persistence").await.unwrap();
    assert_eq!(severity(lazy.as_ref()), Some(Severity::Note), "{lazy:?}");
}

#[tokio::test]
async fn a_replica_is_told_on_both_sides() {
    let (Some(primary), Some(replica)) = (Stage::set().await, Stage::set().await) else { return };
    let (host, port) = ("127.0.0.1", primary.server.address().port().to_string());
    replica.raw::<()>(&["REPLICAOF", host, &port]).await;
    let finding = found(&replica, "replica").await;
    assert_eq!(severity(finding.as_ref()), Some(Severity::Danger), "{finding:?}");
    assert!(finding.unwrap().remedy.unwrap().contains(&port));
    eventually(async || found(&primary, "replicas").await.is_some()).await;
    let finding = found(&primary, "replicas").await;
    assert_eq!(severity(finding.as_ref()), Some(Severity::Warning), "{finding:?}");
    primary.raw::<()>(&["CONFIG", "SET", "min-replicas-to-write", "3"]).await;
    let finding = found(&primary, "replicas").await;
    assert_eq!(severity(finding.as_ref()), Some(Severity::Danger), "{finding:?}");
}

#[tokio::test]
async fn lesser_settings_are_told() {
    let cases = [
        ("lua-time-limit", "0", "script-limit", Severity::Note),
        ("client-output-buffer-limit", "pubsub 1000 1000 1", "message-buffer", Severity::Warning),
        ("notify-keyspace-events", "KEA", "notifications", Severity::Note),
    ];
    let Some(stage) = Stage::set().await else { return };
    for (setting, value, topic, expected) in cases {
        assert_eq!(found(&stage, topic).await, None);
        let before: Vec<String> = stage.raw(&["CONFIG", "GET", setting]).await;
        stage.raw::<()>(&["CONFIG", "SET", setting, value]).await;
        let finding = found(&stage, topic).await;
        assert_eq!(severity(finding.as_ref()), Some(expected), "{setting}: {finding:?}");
        stage.raw::<()>(&["CONFIG", "SET", setting, &before[1]]).await;
    }
}

#[tokio::test]
async fn a_server_without_a_connection_to_spare_is_told() {
    let Some(stage) = Stage::set().await else { return };
    let store = stage.store().await;
    stage.raw::<()>(&["CONFIG", "SET", "maxclients", "2"]).await;
    let findings = store.diagnose("").await.unwrap();
    let severity = |topic: &str| severity(findings.iter().find(|finding| finding.topic == topic));
    assert_eq!(severity("connections"), Some(Severity::Warning), "{findings:#?}");
    assert_eq!(severity("messages"), Some(Severity::Danger), "{findings:#?}");
}

#[tokio::test]
async fn a_server_that_hides_its_settings_is_examined_as_far_as_it_goes() {
    let Some(stage) = Stage::set().await else { return };
    stage.raw::<()>(&["ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-config"]).await;
    let config = stage.config().with_username("app").with_password("pw");
    let findings = Client::new(Redis::open(config.clone()).await.unwrap()).diagnose().await.unwrap();
    let note = findings.iter().find(|finding| finding.topic == "not-checked").unwrap();
    assert_eq!(note.severity, Severity::Note);
    assert!(note.what.contains("save") && !note.what.contains("maxmemory"), "{}", note.what);
    assert!(findings.iter().any(|finding| finding.topic == "eviction"));
    stage.raw::<()>(&["ACL", "SETUSER", "app", "-info", "-time"]).await;
    let findings = Client::new(Redis::open(config).await.unwrap()).diagnose().await.unwrap();
    let note = findings.iter().find(|finding| finding.topic == "not-checked").unwrap();
    assert!(note.what.contains("INFO") && note.what.contains("maxmemory"), "{}", note.what);
}

#[tokio::test]
async fn missing_rights_are_named_one_by_one() {
    let Some(stage) = Stage::set().await else { return };
    let cases: [(&[&str], &str); 9] = [
        (&["~*", "&*", "+@all", "-hset"], "may not run hset"),
        (&["~*", "&*", "+@all", "-zadd", "-zrem"], "may not run zadd, zrem"),
        (&["~*", "&*", "+@all", "-set"], "may not run set"),
        (&["~*", "&*", "+@all", "-evalsha"], "may not run evalsha"),
        (&["~*", "&*", "+@all", "-subscribe"], "may not run subscribe"),
        (&["~*", "&other_*", "+@all"], "may not use channels such as redisson_countdownlatch__channel__{"),
        (&["~*", "&redisson_*", "+@all"], "may not use channels such as leasehold_breaks:"),
        (
            &["~leasehold-*", "~redisson_*", "~leasehold_*", "&*", "+@all"],
            "keys such as {leasehold-doctor-rights}:timeout",
        ),
        (&["~other", "&*", "+@all"], "may not touch keys such as leasehold-doctor-rights,"),
    ];
    for (rules, expected) in cases {
        stage.raw::<()>(&[&["ACL", "SETUSER", "eve", "reset", "on", ">pw"], rules].concat()).await;
        let config = stage.config().with_username("eve").with_password("pw");
        let findings = Client::new(Redis::open(config).await.unwrap()).diagnose().await.unwrap();
        let finding = findings.iter().find(|finding| finding.topic == "permissions").unwrap();
        assert_eq!(finding.severity, Severity::Danger, "{rules:?}");
        assert!(
            finding.what.contains("\"eve\"") && finding.what.contains(expected),
            "{rules:?}: {}",
            finding.what
        );
        assert_eq!(
            findings.iter().filter(|finding| finding.severity > Severity::Warning).count(),
            1,
            "{findings:#?}"
        );
    }
    assert_eq!(stage.keys().await, [""; 0]);
}

#[tokio::test]
async fn a_command_that_is_renamed_away_is_named() {
    let recipe = leasehold_testkit::servers::Recipe {
        program: "redis-server",
        package: "redis-server",
        arguments: |port, folder| {
            let configuration = format!(
                "port {port}\nbind 127.0.0.1\ndir {}\nsave \"\"\nrename-command LPOS \"\"\nrename-command CONFIG hidden\n",
                folder.display()
            );
            let file = folder.join("redis.conf");
            std::fs::write(&file, configuration).unwrap();
            vec![file.display().to_string()]
        },
        answers: |address| std::net::TcpStream::connect(address).is_ok(),
    };
    let Some(server) = start_or_skip(|| leasehold_testkit::servers::Server::start(recipe)) else { return };
    let config = RedisConfig::new("127.0.0.1", server.address().port());
    let findings = Client::new(Redis::open(config).await.unwrap()).diagnose().await.unwrap();
    let finding = findings.iter().find(|finding| finding.topic == "commands").unwrap();
    assert_eq!((finding.severity, finding.what.ends_with(": lpos")), (Severity::Danger, true), "{finding:?}");
    assert!(findings.iter().any(|finding| finding.topic == "not-checked"));
}

#[tokio::test]
async fn names_that_a_cluster_would_tear_apart_are_told_with_the_prefix() {
    let Some(stage) = Stage::set().await else { return };
    let client = stage.client().await;
    for (name, expected) in
        [("a", Severity::Good), ("{a}b", Severity::Good), ("a{b", Severity::Note), ("a}b", Severity::Note)]
    {
        let findings = client.diagnose_name(name).unwrap();
        assert_eq!(findings[0].severity, expected, "{findings:?}");
    }
    let prefixed = Client::builder(stage.store().await).prefix("{app}:").build();
    assert_eq!(prefixed.diagnose_name("a}b").unwrap()[0].severity, Severity::Good);
}

#[tokio::test]
async fn the_least_rights_below_a_prefix_are_enough_for_it_and_for_nothing_else() {
    let Some(stage) = Stage::set().await else { return };
    let line = stage.store().await.diagnose("shop:").await.unwrap();
    let line = line.iter().find(|finding| finding.topic == "permissions").unwrap().command.clone().unwrap();
    grant(&stage.server, &line, "shop");
    let config = stage.config().with_username("shop").with_password("pw");
    let store = Redis::open(config).await.unwrap();
    let findings = store.diagnose("shop:").await.unwrap();
    assert_eq!(
        findings.iter().find(|finding| finding.topic == "permissions").map(|found| found.severity),
        Some(Severity::Good)
    );
    let client = Client::builder(store.clone()).prefix("shop:").build();
    use_everything(&client).await;
    let error = Client::new(store).lock("a").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[tokio::test]
async fn a_cluster_is_examined_and_its_least_rights_are_enough() {
    let Some(cluster) = start_or_skip(servers::Cluster::start) else { return };
    let config = RedisConfig::from_url(&cluster.url()).unwrap();
    let store = Redis::open(config.clone()).await.unwrap();
    let findings = store.diagnose("").await.unwrap();
    assert!(findings.iter().all(|finding| finding.severity < Severity::Danger), "{findings:#?}");
    assert_eq!(severity(about(&findings, "replicas")), Some(Severity::Warning), "{findings:#?}");
    assert_eq!(findings.iter().filter(|finding| finding.topic == "persistence").count(), 1, "{findings:#?}");
    let client = Client::new(store);
    assert_eq!(client.diagnose_name("a{b").unwrap()[0].severity, Severity::Danger);
    let line = about(&findings, "permissions").unwrap().command.clone().unwrap();
    for node in cluster.nodes() {
        grant(node, &line, "least");
    }
    let store = Redis::open(config.with_username("least").with_password("pw")).await.unwrap();
    let findings = store.diagnose("").await.unwrap();
    assert_eq!(severity(about(&findings, "permissions")), Some(Severity::Good), "{findings:#?}");
    use_everything(&Client::new(store)).await;
}

#[tokio::test]
async fn a_member_of_a_cluster_that_is_asked_alone_is_told() {
    let setup = servers::Setup::new().with_setting("cluster-enabled", "yes");
    let Some(server) = start_or_skip(|| servers::Redis::start_as(&setup)) else { return };
    let store = Redis::open(RedisConfig::from_url(&server.url()).unwrap()).await.unwrap();
    let findings = store.diagnose("").await.unwrap();
    assert_eq!(severity(about(&findings, "server-mode")), Some(Severity::Danger), "{findings:#?}");
}

#[tokio::test]
async fn replicas_are_fine_once_grants_wait_for_them() {
    let Some(replicated) = start_or_skip(|| servers::Replicated::start(1)) else { return };
    for (wait_replicas, expected) in [(0, Severity::Warning), (1, Severity::Good), (2, Severity::Danger)] {
        let config = RedisConfig::from_url(&replicated.url()).unwrap().with_wait_replicas(wait_replicas);
        let findings = Redis::open(config).await.unwrap().diagnose("").await.unwrap();
        assert_eq!(severity(about(&findings, "replicas")), Some(expected), "{findings:#?}");
    }
}

fn about<'a>(findings: &'a [Finding], topic: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.topic == topic)
}

/// Every kind of lock, listed and broken.
async fn use_everything(client: &Client) {
    client.lock("a").fair().acquire().await.unwrap().release().await.unwrap();
    client.rwlock("a").read().acquire().await.unwrap().release().await.unwrap();
    client.semaphore("s", 3).acquire().await.unwrap().release().await.unwrap();
    client.latch("l").arm(1).await.unwrap();
    client.latch("l").count_down().await.unwrap();
    let held = client.lock("b").acquire().await.unwrap();
    assert_eq!(client.list("b", None, 10).await.unwrap().locks.len(), 1);
    assert_eq!(client.break_hold("b", held.id(), "test").await.unwrap(), BreakOutcome::Broken);
}

/// Does what the line says, word by word, for a user of this name.
fn grant(server: &servers::Redis, line: &str, user: &str) {
    let line = line.replace("leasehold on >PASSWORD", &format!("{user} on >pw"));
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(server.command(&words).unwrap(), "+OK", "{line}");
}

/// Our user has exactly what doctor says it needs.
async fn least(server: &servers::Redis) {
    let store = Redis::open(RedisConfig::from_url(&server.url()).unwrap()).await.unwrap();
    let findings = store.diagnose("").await.unwrap();
    let line =
        findings.iter().find_map(|finding| finding.command.as_deref().filter(|line| line.starts_with("ACL")));
    grant(server, line.unwrap(), "least");
}

// The whole suite, as a user with the least rights.
leasehold_testkit::conformance!(with_least_rights, real, {
    static SERVER: Shared<servers::Redis> = Shared::new();
    let server = SERVER.get(servers::Redis::start);
    least(&server).await;
    let url = server.url();
    Fixture::backends(move || {
        let config = RedisConfig::from_url(&url).unwrap().with_username("least").with_password("pw");
        async move { Redis::open(config).await.unwrap() }
    })
    .keep(server)
});
