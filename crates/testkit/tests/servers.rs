//! Real servers start, pause, crash, come back, and end with whoever started them.
#![cfg(unix)]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use leasehold_testkit::servers::{Server, redis::Redis, start_or_skip};

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
