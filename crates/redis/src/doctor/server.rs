//! What a server's own account of itself means for locks. Pure: facts in, findings out.
//!
//! The measure is always the same. A danger breaks locks with nothing else going wrong; a warning makes a restart or a
//! failover break them; a note is worth knowing. What a server does not tell is passed over here.

use leasehold_core::backend::Finding;

use super::{Terms, facts::Facts};

/// The oldest version whose commands are enough.
const OLDEST: (u32, u32) = (6, 2);

/// Subscribers with less room than this, in bytes, may be cut off by a burst of wake-ups.
const ROOM: u64 = 1 << 20;

/// What a server says, judged in the order in which people would ask.
pub(super) fn judge(facts: &Facts, terms: &Terms) -> Vec<Finding> {
    let judges: [fn(&Facts, &Terms) -> Option<Finding>; 12] = [
        version,
        mode,
        role,
        eviction,
        memory,
        persistence,
        disk,
        replicas,
        database,
        scripts,
        messages,
        clients,
    ];
    let found = judges.iter().filter_map(|judge| judge(facts, terms));
    found.chain(notifications(facts)).collect()
}

fn version(facts: &Facts, _: &Terms) -> Option<Finding> {
    const TOPIC: &str = "server-version";
    let compatible = facts.info("redis_version")?;
    let (name, shown) = match facts.info("valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", compatible),
    };
    let mut numbers = compatible.split('.').map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next()?, numbers.next().unwrap_or(0));
    if version >= OLDEST {
        return Some(Finding::good(TOPIC, format!("{name} {shown}")));
    }
    let finding = Finding::danger(TOPIC, format!("{name} {shown} is too old; locks need 6.2 or newer"));
    Some(
        finding
            .because("locks use commands that it does not have (SET with GET, LPOS), so acquiring fails")
            .remedy("upgrade the server, to Redis 7 or Valkey 8 at best"),
    )
}

fn mode(facts: &Facts, terms: &Terms) -> Option<Finding> {
    const TOPIC: &str = "server-mode";
    match facts.info("redis_mode")? {
        "sentinel" => Some(
            Finding::danger(
                TOPIC,
                "this is a Sentinel, which knows where the server is and keeps no keys itself",
            )
            .because("no lock can live here")
            .remedy("connect with redis+sentinel://HOST:26379,…/MASTER"),
        ),
        "cluster" if !terms.is_cluster => Some(
            Finding::danger(TOPIC, "this server is part of a cluster, and is asked as if it stood alone")
                .because("locks whose slot is on another server are refused")
                .remedy("connect with redis+cluster://HOST:PORT,…"),
        ),
        "standalone" if terms.is_cluster => Some(
            Finding::danger(TOPIC, "this server is not part of a cluster, and is asked as if it were")
                .because("it knows nothing of slots or of other servers")
                .remedy("connect with redis://HOST:PORT"),
        ),
        _ => None,
    }
}

fn role(facts: &Facts, _: &Terms) -> Option<Finding> {
    if facts.info("role")? != "slave" {
        return None;
    }
    let primary = match (facts.info("master_host"), facts.info("master_port")) {
        (Some(host), Some(port)) => format!("connect to its primary, {host} port {port}"),
        _ => "connect to its primary".to_owned(),
    };
    Some(
        Finding::danger("replica", "this server is a replica")
            .because("a replica refuses writes, or takes them and forgets them: nobody holds a lock here")
            .remedy(primary),
    )
}

fn eviction(facts: &Facts, _: &Terms) -> Option<Finding> {
    const TOPIC: &str = "eviction";
    let policy = facts.setting("maxmemory-policy")?;
    if policy == "noeviction" {
        return Some(Finding::good(TOPIC, "keys are never evicted (maxmemory-policy noeviction)"));
    }
    let remedy = "let the server refuse writes instead of dropping locks, and keep caches on another one";
    let command = "CONFIG SET maxmemory-policy noeviction";
    let finding = match facts.count("maxmemory") {
        Some(0) => Finding::warning(
            TOPIC,
            format!(
                "keys would be evicted if a memory limit were set (maxmemory-policy {policy}, maxmemory 0)"
            ),
        )
        .because("the day somebody sets a limit, locks begin to vanish while their holders believe in them"),
        _ => Finding::danger(
            TOPIC,
            format!("keys are evicted when memory runs short (maxmemory-policy {policy})"),
        )
        .because("an evicted lock is free: a second holder gets it while the first still believes in it"),
    };
    Some(finding.remedy(remedy).command(command))
}

fn memory(facts: &Facts, _: &Terms) -> Option<Finding> {
    let (limit, used) = (facts.count("maxmemory").filter(|limit| *limit > 0)?, facts.number("used_memory")?);
    let percent = u128::from(used) * 100 / u128::from(limit);
    if percent < 90 {
        return None;
    }
    Some(
        Finding::warning("memory", format!("{percent} % of the memory the server may use is in use"))
            .because("a full server refuses new locks; those held can still be renewed and released")
            .remedy("free memory or raise maxmemory"),
    )
}

fn persistence(facts: &Facts, _: &Terms) -> Option<Finding> {
    const TOPIC: &str = "persistence";
    let log = facts.info("aof_enabled")? == "1";
    let durable = "write every command to disk before it is answered: appendonly yes, appendfsync always";
    let command = if log { "CONFIG SET appendfsync always" } else { "CONFIG SET appendonly yes" };
    let broken =
        |lost: &str| format!("{lost}; their holders still believe in them, and others get the same locks");
    let finding = match (log, facts.setting("appendfsync"), facts.setting("save")) {
        (true, Some("always"), _) => {
            return Some(Finding::good(
                TOPIC,
                "every write is on disk before it is answered (appendfsync always)",
            ));
        }
        (true, Some("everysec"), _) => {
            Finding::note(TOPIC, "the log is written to disk once a second (appendfsync everysec)")
                .because(broken("a crash of the machine forgets locks of the last second or two"))
        }
        (true, Some(_), _) => {
            Finding::warning(TOPIC, "the log reaches the disk whenever the system likes (appendfsync no)")
                .because(broken("a crash of the machine forgets locks of the last half minute or so"))
        }
        (true, None, _) => {
            return Some(Finding::good(TOPIC, "the server keeps a log of its writes (appendonly yes)"));
        }
        (false, _, Some("")) => {
            Finding::warning(TOPIC, "nothing is kept on disk (appendonly no, no snapshots)")
                .because(broken("a restart forgets all locks"))
        }
        (false, _, Some(save)) => Finding::warning(
            TOPIC,
            format!("only snapshots are kept on disk (appendonly no, save {save:?})"),
        )
        .because(broken(
            "a restart forgets all locks taken since the last snapshot, and brings released ones back",
        )),
        (false, _, None) => Finding::warning(TOPIC, "the server keeps no log of its writes (appendonly no)")
            .because(broken("a restart forgets all locks, or all since a snapshot")),
    };
    Some(finding.remedy(durable).command(command))
}

fn disk(facts: &Facts, _: &Terms) -> Option<Finding> {
    let fails = |field: &str| facts.info(field).is_some_and(|status| status != "ok");
    let what = match (fails("aof_last_write_status"), fails("rdb_last_bgsave_status")) {
        (true, _) => "the server could not write its log to disk",
        (false, true) => "the last snapshot could not be written to disk",
        (false, false) => return None,
    };
    Some(
        Finding::danger("disk", what)
            .because(
                "a server that cannot write to disk refuses every write, so no lock can be taken or renewed",
            )
            .remedy("see the server's log; often the disk is full or its folder is not writable"),
    )
}

fn replicas(facts: &Facts, terms: &Terms) -> Option<Finding> {
    const TOPIC: &str = "replicas";
    let connected = facts.number("connected_slaves")?;
    let wanted = u64::from(terms.wait_replicas);
    let (least, fit) =
        (facts.count("min-replicas-to-write").unwrap_or(0), facts.number("min_slaves_good_slaves"));
    if let Some(fit) = fit.filter(|fit| *fit < least) {
        let what = format!("the server wants {least} replicas before it takes a write, and has {fit}");
        return Some(
            Finding::danger(TOPIC, what)
                .because("every acquire is refused")
                .remedy("bring the replicas back"),
        );
    }
    if wanted > connected {
        let what =
            format!("grants wait for {wanted} replicas (wait_replicas), and {connected} are connected");
        let finding =
            Finding::danger(TOPIC, what).because("no grant can be confirmed, so every acquire fails");
        return Some(finding.remedy("bring the replicas back, or ask for fewer with wait_replicas"));
    }
    let plural =
        if connected == 1 { "1 replica follows".to_owned() } else { format!("{connected} replicas follow") };
    match (connected, wanted) {
        (0, _) => None,
        (_, 0) => Some(
            Finding::warning(TOPIC, format!("{plural}, and grants do not wait for them"))
                .because(
                    "a failover can lose a lock that was just granted: replication is asynchronous, and the new primary \
                     grants it again",
                )
                .remedy(
                    "add wait_replicas=1 to the store URL (redis+sentinel:, redis+replicas: or redis+cluster:); \
                     min-replicas-to-write 1 stops a primary that is cut off from its replicas",
                ),
        ),
        _ => Some(Finding::good(TOPIC, format!("{plural}, and a grant waits for {wanted}"))),
    }
}

fn database(facts: &Facts, terms: &Terms) -> Option<Finding> {
    if terms.db == 0 || facts.info("cluster_enabled")? != "1" {
        return None;
    }
    Some(
        Finding::warning("database", format!("locks are in database {} of a cluster", terms.db))
            .because("most clusters have database 0 only; a client that cannot choose another meets none of these locks")
            .remedy("use database 0 and a prefix"),
    )
}

fn scripts(facts: &Facts, _: &Terms) -> Option<Finding> {
    if facts.count("lua-time-limit")? != 0 {
        return None;
    }
    Some(
        Finding::note("script-limit", "scripts may run for as long as they like (lua-time-limit 0)")
            .because("a script of another program that never ends cannot be stopped, and no lease can be renewed meanwhile")
            .remedy("set the limit that is usual")
            .command("CONFIG SET lua-time-limit 5000"),
    )
}

/// `normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60`
fn messages(facts: &Facts, _: &Terms) -> Option<Finding> {
    let mut words = facts.setting("client-output-buffer-limit")?.split_whitespace();
    words.find(|word| *word == "pubsub")?;
    let limits = words.take(2).filter_map(|word| word.parse::<u64>().ok());
    let least = limits.filter(|limit| *limit > 0).min()?;
    if least >= ROOM {
        return None;
    }
    Some(
        Finding::warning("message-buffer", format!("subscribers are cut off when {least} bytes wait for them"))
            .because("those who wait for locks are woken by messages; cut off, they wait until they look again by themselves")
            .remedy("give subscribers the usual room")
            .command("CONFIG SET client-output-buffer-limit \"pubsub 33554432 8388608 60\""),
    )
}

fn clients(facts: &Facts, _: &Terms) -> Option<Finding> {
    let (connected, limit) = (facts.number("connected_clients")?, facts.count("maxclients")?);
    if connected.saturating_mul(10) < limit.saturating_mul(9) {
        return None;
    }
    Some(
        Finding::warning("connections", format!("{connected} of {limit} connections are in use"))
            .because("a client that is refused a connection can neither take nor renew a lock; each of ours needs two")
            .remedy("raise maxclients, or find who keeps so many open (CLIENT LIST)"),
    )
}

fn notifications(facts: &Facts) -> Option<Finding> {
    let events = facts.setting("notify-keyspace-events").filter(|events| !events.is_empty())?;
    let what = format!("keyspace notifications are on ({events}); locks do not need them");
    Some(
        Finding::note("notifications", what)
            .because("every acquire and release publishes several messages more, for whoever else wants them")
            .remedy("turn them off unless another program needs them")
            .command("CONFIG SET notify-keyspace-events \"\""),
    )
}

#[cfg(test)]
mod tests {
    use leasehold_core::backend::Severity;

    use super::*;

    const TERMS: Terms =
        Terms { is_cluster: false, is_found: false, username: None, db: 0, wait_replicas: 0 };

    fn severity(
        topic: &str,
        info: &[(&str, &str)],
        settings: &[(&str, &str)],
        terms: &Terms,
    ) -> Option<Severity> {
        let findings = judge(&Facts::of(info, settings), terms);
        findings.iter().find(|finding| finding.topic == topic).map(|finding| finding.severity)
    }

    #[test]
    fn versions_are_compared_as_numbers_and_by_what_they_are_compatible_with() {
        let version = |pairs: &[(&str, &str)]| severity("server-version", pairs, &[], &TERMS);
        for (version_, expected) in [
            ("6.0.16", Severity::Danger),
            ("6.2.0", Severity::Good),
            ("7.0.15", Severity::Good),
            ("10.1", Severity::Good),
            ("5", Severity::Danger),
        ] {
            assert_eq!(version(&[("redis_version", version_)]), Some(expected), "{version_}");
        }
        assert_eq!(version(&[("redis_version", "nonsense")]), None);
        let valkey = [("redis_version", "7.2.4"), ("valkey_version", "8.1.0")];
        assert_eq!(judge(&Facts::of(&valkey, &[]), &TERMS)[0].what, "Valkey 8.1.0");
    }

    #[test]
    fn eviction_is_a_danger_only_where_there_is_a_limit() {
        let policy = |policy, limit| {
            severity("eviction", &[], &[("maxmemory-policy", policy), ("maxmemory", limit)], &TERMS)
        };
        assert_eq!(policy("noeviction", "100"), Some(Severity::Good));
        assert_eq!(policy("volatile-lru", "100"), Some(Severity::Danger));
        assert_eq!(policy("allkeys-lru", "0"), Some(Severity::Warning));
        let hidden = [("maxmemory_policy", "allkeys-lfu"), ("maxmemory", "100")];
        assert_eq!(severity("eviction", &hidden, &[], &TERMS), Some(Severity::Danger));
    }

    #[test]
    fn persistence_is_judged_by_what_a_restart_forgets() {
        let kept = |log, settings: &[(&str, &str)]| {
            severity("persistence", &[("aof_enabled", log)], settings, &TERMS)
        };
        assert_eq!(kept("1", &[("appendfsync", "always")]), Some(Severity::Good));
        assert_eq!(kept("1", &[("appendfsync", "everysec")]), Some(Severity::Note));
        assert_eq!(kept("1", &[("appendfsync", "no")]), Some(Severity::Warning));
        assert_eq!(kept("0", &[("save", "")]), Some(Severity::Warning));
        assert_eq!(kept("0", &[("save", "3600 1")]), Some(Severity::Warning));
        assert_eq!(kept("0", &[]), Some(Severity::Warning));
    }

    #[test]
    fn replicas_matter_unless_grants_wait_for_them() {
        let follow = |connected, wait_replicas| {
            let terms = Terms { wait_replicas, ..TERMS };
            severity("replicas", &[("connected_slaves", connected)], &[], &terms)
        };
        assert_eq!(follow("0", 0), None);
        assert_eq!(follow("2", 0), Some(Severity::Warning));
        assert_eq!(follow("2", 1), Some(Severity::Good));
        assert_eq!(follow("1", 2), Some(Severity::Danger));
        let short = [("connected_slaves", "1"), ("min_slaves_good_slaves", "1")];
        assert_eq!(
            severity("replicas", &short, &[("min-replicas-to-write", "2")], &TERMS),
            Some(Severity::Danger)
        );
    }

    #[test]
    fn servers_of_another_kind_are_dangers() {
        let mode = |mode, is_cluster| {
            severity("server-mode", &[("redis_mode", mode)], &[], &Terms { is_cluster, ..TERMS })
        };
        assert_eq!(mode("standalone", false), None);
        assert_eq!(mode("cluster", true), None);
        for (told, is_cluster) in [("sentinel", false), ("cluster", false), ("standalone", true)] {
            assert_eq!(mode(told, is_cluster), Some(Severity::Danger), "{told}");
        }
        assert_eq!(severity("replica", &[("role", "slave")], &[], &TERMS), Some(Severity::Danger));
        let numbered = Terms { db: 3, ..TERMS };
        assert_eq!(
            severity("database", &[("cluster_enabled", "1")], &[], &numbered),
            Some(Severity::Warning)
        );
        assert_eq!(severity("database", &[("cluster_enabled", "0")], &[], &numbered), None);
    }

    #[test]
    fn what_is_nearly_used_up_is_told() {
        let used = |used| severity("memory", &[("used_memory", used)], &[("maxmemory", "1000")], &TERMS);
        assert_eq!((used("899"), used("900")), (None, Some(Severity::Warning)));
        let open = |open| {
            severity("connections", &[("connected_clients", open), ("maxclients", "100")], &[], &TERMS)
        };
        assert_eq!((open("89"), open("90")), (None, Some(Severity::Warning)));
        let failed = [("aof_last_write_status", "err")];
        assert_eq!(severity("disk", &failed, &[], &TERMS), Some(Severity::Danger));
    }

    #[test]
    fn a_server_that_says_nothing_is_judged_by_nothing() {
        assert_eq!(judge(&Facts::none(), &TERMS), []);
    }
}
