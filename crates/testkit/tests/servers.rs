//! Real servers start, pause, crash, come back, and end with whoever started them.
#![cfg(unix)]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use leasehold_testkit::servers::{
    Server,
    redis::{Brand, Cluster, Independent, Keeps, Redis, Replicated, Reply, Role, Sentinels, Setup},
    start_or_skip,
};

#[test]
fn a_redis_answers_pauses_crashes_and_comes_back_on_its_port() {
    let Some(mut redis) = start_or_skip(Redis::start) else { return };
    let (port, pid) = (redis.port(), redis.pid());
    assert_eq!(redis.command(&["PING"]).unwrap(), "+PONG");
    assert_eq!(redis.command(&["SET", "k", "v"]).unwrap(), "+OK");

    redis.pause().unwrap();
    until("it is stopped", || state(pid) == Some('T'));
    assert!(!redis.answers(), "a paused server accepts connections, but does not answer");
    redis.resume().unwrap();
    until("it answers again", || redis.answers());

    redis.crash().unwrap();
    assert!(!redis.answers());
    assert_eq!(state(pid), None, "the process is gone, not a zombie");

    redis.restart().unwrap();
    assert_eq!((redis.port(), redis.command(&["PING"]).unwrap().as_str()), (port, "+PONG"));
    assert_eq!(redis.command(&["EXISTS", "k"]).unwrap(), ":0", "it kept nothing");
}

#[test]
fn a_variable_is_in_the_servers_environment_also_after_a_restart() {
    // Redis writes its title over its environment, unless it is told not to.
    let setup = Setup::new().with_variable("LEASEHOLD_EXAMPLE", "here").with_setting("set-proc-title", "no");
    let Some(mut redis) = start_or_skip(|| Redis::start_as(&setup)) else { return };
    let environment = |pid: u32| std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let is_there =
        |pid| environment(pid).split(|byte| *byte == 0).any(|one| one == b"LEASEHOLD_EXAMPLE=here");
    assert!(is_there(redis.pid()));
    redis.restart().unwrap();
    assert!(is_there(redis.pid()));
}

#[test]
fn a_durable_redis_has_its_data_again_after_a_crash() {
    let Some(mut redis) = start_or_skip(Redis::start_durable) else { return };
    assert_eq!(redis.command(&["SET", "k", "v"]).unwrap(), "+OK");
    redis.restart().unwrap();
    assert_eq!(redis.command(&["EXISTS", "k"]).unwrap(), ":1");
}

#[test]
fn a_paused_server_is_killed_on_drop_and_its_folder_removed() {
    let Some(redis) = start_or_skip(Redis::start) else { return };
    let (pid, folder) = (redis.pid(), redis.folder().to_owned());
    redis.pause().unwrap();
    drop(redis);
    assert_eq!(state(pid), None);
    assert!(!folder.exists());
}

#[test]
fn a_server_that_cannot_run_says_why_in_its_own_words() {
    let Some(redis) = start_or_skip(Redis::start) else { return };
    drop(redis);
    let mut recipe = leasehold_testkit::servers::Recipe {
        program: "redis-server",
        package: "redis-server",
        arguments: |_, _| vec!["--no-such-option".to_owned(), "1".to_owned()],
        answers: |_| false,
    };
    let error = Server::start(recipe).unwrap_err().to_string();
    assert!(error.contains("redis-server ended at once") && error.contains("no-such-option"), "{error}");
    recipe.program = "no-such-server";
    let error = Server::start(recipe).unwrap_err().to_string();
    assert!(error.contains("no-such-server is not installed"), "{error}");
}

#[test]
fn valkey_says_that_it_is_valkey() {
    for brand in Brand::to_test() {
        let redis = Redis::start_as(&Setup::new().with_brand(brand)).unwrap();
        let name = redis.info("server_name").unwrap();
        assert_eq!(name.as_deref(), (brand == Brand::Valkey).then_some("valkey"), "{brand:?}");
        assert!(redis.info("redis_version").unwrap().is_some(), "{brand:?}");
    }
}

#[test]
fn independent_servers_follow_nobody_and_keep_what_they_are_asked_to() {
    let durable = Setup::new().with_keeps(Keeps::EveryWrite);
    let Some(mut five) = start_or_skip(|| Independent::start_as(5, &durable)) else { return };
    for (index, member) in five.members().iter().enumerate() {
        assert_eq!(member.role().unwrap(), Role::Primary);
        assert_eq!(member.info("aof_enabled").unwrap().as_deref(), Some("1"));
        member.demand(&["SET", "k", &index.to_string()]).unwrap();
    }
    assert!(five.url().starts_with("redlock+redis://127.0.0.1:"), "{}", five.url());
    assert_eq!(five.url().split(',').count(), 5);

    five.members_mut()[3].restart().unwrap();
    for (index, member) in five.members().iter().enumerate() {
        assert_eq!(member.ask(&["GET", "k"]).unwrap(), Reply::Text(index.to_string()));
    }
    leaves_nothing_behind(pids(five.members()), five);
}

#[test]
fn a_replica_that_is_promoted_takes_writes_and_the_old_primary_still_does() {
    let Some(mut trio) = start_or_skip(|| Replicated::start(2)) else { return };
    let roles = |trio: &Replicated| trio.members().iter().map(|one| one.role().unwrap()).collect::<Vec<_>>();
    let follows = |of: &Redis| Role::Replica { of: of.port(), linked: true };
    let first = follows(&trio.members()[0]);
    assert_eq!(roles(&trio), [Role::Primary, first, first]);
    assert!(trio.url().starts_with("redis+replicas://127.0.0.1:"), "{}", trio.url());
    assert_eq!(trio.url().split(',').count(), 3);
    let refused = trio.members()[1].ask(&["SET", "k", "v"]).unwrap();
    assert!(refused.text().unwrap().starts_with("READONLY"), "{refused:?}");

    trio.promote(1).unwrap();
    assert_eq!(trio.primary_index(), 1);
    assert_eq!(roles(&trio), [Role::Primary, Role::Primary, first], "nobody told the old one");
    trio.switch_over(2).unwrap();
    let third = follows(&trio.members()[2]);
    assert_eq!(roles(&trio), [third, third, Role::Primary]);

    trio.primary().demand(&["SET", "k", "v"]).unwrap();
    trio.primary().demand(&["WAIT", "2", "1000"]).unwrap();
    trio.members_mut()[0].restart().unwrap();
    trio.await_settled().unwrap();
    assert_eq!(trio.members()[0].ask(&["GET", "k"]).unwrap(), Reply::Text("v".to_owned()));
    leaves_nothing_behind(pids(trio.members()), trio);
}

#[test]
fn sentinels_choose_another_primary_when_asked_and_when_it_crashes() {
    for brand in Brand::to_test() {
        let mut watched = Sentinels::start_as(&Setup::new().with_brand(brand)).unwrap();
        assert!(watched.sentinels().iter().all(|one| one.role().unwrap() == Role::Sentinel));
        let url = watched.url();
        assert!(url.starts_with("redis+sentinel://127.0.0.1:") && url.ends_with("/mymaster"), "{url}");
        assert_eq!(url.split(',').count(), 3);

        let before = watched.primary().unwrap();
        let chosen = watched.failover().unwrap();
        assert_ne!(chosen, before);
        assert_eq!(watched.members()[chosen].role().unwrap(), Role::Primary);

        let crashed = watched.crash_primary().unwrap();
        let chosen = watched.await_failover(crashed).unwrap();
        assert_ne!(chosen, crashed);
        let address = watched.primary_address().unwrap();
        assert_ne!(address, watched.members()[crashed].address());
        watched.members_mut()[crashed].restart().unwrap();
        let all = [pids(watched.members()), pids(watched.sentinels())].concat();
        leaves_nothing_behind(all, watched);
    }
}

#[test]
fn an_old_primary_comes_back_as_one_until_the_sentinels_demote_it() {
    let Some(mut watched) = start_or_skip(Sentinels::start) else { return };
    let old = watched.crash_primary().unwrap();
    watched.await_failover(old).unwrap();
    watched.members_mut()[old].restart().unwrap();
    assert_eq!(watched.members()[old].role().unwrap(), Role::Primary, "nobody told it yet");

    watched.await_settled().unwrap();
    let roles: Vec<Role> = watched.members().iter().map(|member| member.role().unwrap()).collect();
    assert_eq!(roles.iter().filter(|role| **role == Role::Primary).count(), 1, "{roles:?}");
    let linked = roles.iter().filter(|role| matches!(role, Role::Replica { linked: true, .. }));
    assert_eq!(linked.count(), 2, "{roles:?}");
}

#[test]
fn a_replica_takes_the_slots_of_a_primary_that_crashed() {
    for brand in Brand::to_test() {
        let mut cluster = Cluster::start_as(&Setup::new().with_brand(brand)).unwrap();
        assert_eq!(cluster.url().split(',').count(), 6);
        assert!(cluster.url().starts_with("redis+cluster://127.0.0.1:"), "{}", cluster.url());
        let owners: Vec<usize> = [0, 5460, 5461, 10921, 10922, 16383]
            .into_iter()
            .map(|slot| cluster.owner(slot).unwrap())
            .collect();
        assert_eq!(owners, [0, 0, 1, 1, 2, 2]);
        for (primary, replica) in [(0, 3), (1, 4), (2, 5)] {
            let of = cluster.nodes()[primary].port();
            assert_eq!(cluster.nodes()[primary].role().unwrap(), Role::Primary);
            assert_eq!(cluster.nodes()[replica].role().unwrap(), Role::Replica { of, linked: true });
        }

        let slot = cluster.slot_of("foo").unwrap();
        assert_eq!(slot, 12182, "as the documentation of Redis has it");
        assert_eq!(cluster.crash_owner(slot).unwrap(), 2);
        assert_eq!(cluster.await_takeover(slot, 2).unwrap(), 5);
        cluster.nodes()[5].demand(&["SET", "foo", "bar"]).unwrap();
        cluster.nodes_mut()[2].restart().unwrap();
        cluster.await_settled().unwrap();
        assert_eq!(cluster.owner(slot).unwrap(), 5, "the old owner came back as a replica");
        leaves_nothing_behind(pids(cluster.nodes()), cluster);
    }
}

#[test]
fn a_slot_on_its_way_answers_ask_and_then_moved() {
    let Some(cluster) = start_or_skip(Cluster::start) else { return };
    let slot = cluster.slot_of("{foo}").unwrap();
    let (from, to) = (&cluster.nodes()[2], &cluster.nodes()[0]);
    for key in ["{foo}1", "{foo}2", "{foo}3"] {
        from.demand(&["SET", key, "v"]).unwrap();
    }
    let get = |node: &Redis, key: &str| node.ask(&["GET", key]).unwrap();
    let there = Reply::Text("v".to_owned());
    let elsewhere = |word: &str| Reply::Error(format!("{word} {slot} {}", to.address()));

    let migration = cluster.begin_migration(slot, 0).unwrap();
    assert_eq!((migration.slot(), migration.from(), migration.to()), (slot, 2, 0));
    assert_eq!(get(from, "{foo}1"), there, "it did not go yet");
    cluster.move_these_keys(migration, &["{foo}1"]).unwrap();
    assert_eq!(get(from, "{foo}1"), elsewhere("ASK"));
    assert_eq!(get(from, "{foo}2"), there);
    assert_eq!(cluster.owner(slot).unwrap(), 2, "it belongs to where it was until the end");

    assert_eq!(cluster.move_keys(migration).unwrap(), 2);
    assert_eq!(get(from, "{foo}3"), elsewhere("ASK"));
    cluster.finish_migration(migration).unwrap();
    assert_eq!(get(from, "{foo}3"), elsewhere("MOVED"));
    assert_eq!(get(to, "{foo}3"), there);
    assert_eq!(cluster.owner(slot).unwrap(), 0);

    cluster.migrate_slot(slot, 1).unwrap();
    assert_eq!(cluster.owner(slot).unwrap(), 1);
    assert_eq!(get(&cluster.nodes()[1], "{foo}1"), there);
}

/// Set in the process that is to be killed.
const VICTIM: &str = "LEASEHOLD_TEST_VICTIM";

/// What `a_server_dies_with_the_process_that_started_it` runs in a process of its own.
#[test]
#[ignore = "run by another test, in a process that is killed"]
fn starts_a_redis_and_waits_to_be_killed() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let Some(redis) = start_or_skip(Redis::start) else { return };
    println!("\npid {}", redis.pid());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_server_dies_with_the_process_that_started_it() {
    if start_or_skip(Redis::start).is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "starts_a_redis_and_waits_to_be_killed", "--ignored", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("pid ")?.parse::<u32>().ok());
    let pid = pid.expect("the child says the process id of its server");
    assert!(state(pid).is_some(), "the server runs");
    child.kill().unwrap();
    child.wait().unwrap();
    until("the kernel has ended the server", || matches!(state(pid), None | Some('Z' | 'X')));
}

fn pids(servers: &[Redis]) -> Vec<u32> {
    servers.iter().map(|server| server.pid()).collect()
}

/// Drops what these processes belong to, and looks whether they are gone.
fn leaves_nothing_behind<T>(pids: Vec<u32>, servers: T) {
    assert!(pids.iter().all(|pid| state(*pid).is_some()), "they run");
    drop(servers);
    for pid in pids {
        assert_eq!(state(pid), None, "the process {pid} is gone");
    }
}

/// The state letter of a process, `None` if there is none.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Waits until something is so, and fails if that takes a minute.
#[expect(clippy::disallowed_methods, reason = "nothing can be awaited of a process that is not our child")]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
