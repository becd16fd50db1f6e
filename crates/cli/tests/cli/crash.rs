//! The lock and the child part ways: the program is killed, stopped, or told that its lock is gone.

use std::{
    fs,
    time::{Duration, Instant},
};

use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::common::{Outcome, Place, Running, outcome, wait_until};

/// A child that shows that it runs, and will not end when asked to.
const STUBBORN: &str =
    "trap '' TERM; echo held $LEASEHOLD_FENCE >> $LOG; while :; do echo beat >> $LOG; sleep 0.01; done";

/// One that ends when asked to.
const WILLING: &str = "echo held $LEASEHOLD_FENCE >> $LOG; while :; do echo beat >> $LOG; sleep 0.01; done";

fn holder(place: &Place, options: &[&str], script: &str) -> Running {
    let running = place.start(&[&["run"], options, &["x", "--", "sh", "-c", script]].concat());
    place.wait_for_line("beat");
    running
}

/// The next holder gets the lock, after the last sign of life of the first, and with a greater fence.
fn next_holder_comes_after(place: &Place) {
    // It stays for some beats of the first, were that still there.
    let script = "echo next $LEASEHOLD_FENCE >> $LOG; sleep 0.3";
    let next = place.run(&["run", "x", "--", "sh", "-c", script]);
    assert_eq!(next.code, 0, "{}", next.stderr);
    let log = place.log();
    let fence = |word: &str| -> u64 {
        let line = log.iter().find_map(|line| line.strip_prefix(word)).unwrap();
        line.trim().parse().unwrap()
    };
    assert!(log.last().unwrap().starts_with("next"), "the first child lived on: {:?}", &log[log.len() - 3..]);
    assert!(fence("next") > fence("held"));
}

#[test]
fn killed_with_a_willing_child() {
    let place = Place::new();
    holder(&place, &["--ttl", "60s"], WILLING).kill();
    next_holder_comes_after(&place);
}

#[test]
fn killed_with_a_child_that_will_not_end() {
    let place = Place::new();
    holder(&place, &["--ttl", "60s", "--grace", "200ms"], STUBBORN).kill();
    next_holder_comes_after(&place);
}

/// Another run under the one that holds `x`, with this for a command.
fn holder_of_another(place: &Place, options: &[&str], script: &str) -> Running {
    let exe = env!("CARGO_BIN_EXE_leasehold");
    let inner = [exe, "run", "--ttl", "60s", "--grace", "20s", "y", "--", "sh", "-c", script];
    let running = place.start(&[&["run"], options, &["x", "--"], &inner].concat());
    place.wait_for_line("beat");
    running
}

#[test]
fn killed_with_another_run_inside_whose_child_will_not_end() {
    let place = Place::new();
    holder_of_another(&place, &["--ttl", "60s", "--grace", "200ms"], STUBBORN).kill();
    next_holder_comes_after(&place);
    assert_eq!(place.run(&["run", "y", "--", "true"]).code, 0);
}

#[test]
fn stopped_for_longer_than_the_lease_with_another_run_inside() {
    let place = Place::new();
    let running = holder_of_another(&place, &["--ttl", "2s"], STUBBORN);
    running.signal(Signal::SIGSTOP);
    next_holder_comes_after(&place);
    running.signal(Signal::SIGCONT);
    assert_eq!(running.end().code, 76);
}

#[test]
fn time_up_with_another_run_inside_whose_child_will_not_end() {
    let place = Place::new();
    let options = ["--ttl", "60s", "--grace", "200ms", "--max-run", "1s"];
    assert_eq!(holder_of_another(&place, &options, STUBBORN).end().code, 124);
    next_holder_comes_after(&place);
}

#[test]
fn killed_together_with_the_run_inside() {
    let place = Place::new();
    let running = holder_of_another(&place, &["--ttl", "60s", "--grace", "200ms"], STUBBORN);
    let dead_man = dead_man_of(&running).unwrap();
    let mut children = children_of(&running).into_iter().map(|child| Pid::from_raw(child.parse().unwrap()));
    let inner = children.find(|child| *child != dead_man).unwrap();
    // Stopped first, so that neither sees the other go.
    running.signal(Signal::SIGSTOP);
    kill(inner, Signal::SIGKILL).unwrap();
    running.kill();
    next_holder_comes_after(&place);
}

#[test]
fn killed_with_a_child_that_left_its_group() {
    let place = Place::new();
    let script = format!("setsid sh -c \"{}\" & wait", STUBBORN.replace('$', "\\$"));
    holder(&place, &["--ttl", "60s", "--grace", "200ms"], &script).kill();
    next_holder_comes_after(&place);
}

#[test]
fn a_dead_man_does_not_go_by_the_name_of_the_program() {
    let place = Place::new();
    let running = holder(&place, &["--ttl", "60s"], WILLING);
    let dead_man = dead_man_of(&running).unwrap();
    let read = |file: &str| fs::read_to_string(format!("/proc/{dead_man}/{file}")).unwrap();
    wait_until("its name", || read("comm") == "dead-man\n");
    assert!(!read("cmdline").contains("leasehold"), "{}", read("cmdline"));
}

#[test]
fn killed_with_a_stopped_child() {
    let place = Place::new();
    let script = "echo held $LEASEHOLD_FENCE >> $LOG; echo beat >> $LOG; kill -STOP $$; echo beat >> $LOG";
    holder(&place, &["--ttl", "60s"], script).kill();
    next_holder_comes_after(&place);
}

#[test]
fn stopped_for_longer_than_the_lease() {
    let place = Place::new();
    let running = holder(&place, &["--ttl", "2s"], STUBBORN);
    running.signal(Signal::SIGSTOP);
    next_holder_comes_after(&place);
    running.signal(Signal::SIGCONT);
    let ended = running.end();
    assert_eq!(ended.code, 76, "{}", ended.stderr);
    assert!(ended.stderr.contains("the command was stopped"), "{}", ended.stderr);
}

#[test]
fn stopped_for_a_while_and_the_child_ended_in_time() {
    let place = Place::new();
    let script = "echo beat >> $LOG; until [ -e go ]; do sleep 0.01; done; echo done >> $LOG; exit 3";
    let running = holder(&place, &["--ttl", "5s"], script);
    running.signal(Signal::SIGSTOP);
    fs::write(place.path("go"), "").unwrap();
    place.wait_for_line("done");
    // The lease has to run out for the next one to come: the session is still there.
    assert_eq!(place.run(&["run", "x", "--", "true"]).code, 0);
    running.signal(Signal::SIGCONT);
    let ended = running.end();
    assert_eq!(ended.code, 3, "the child ended under its lock: {}", ended.stderr);
}

#[test]
fn broken_by_an_operator() {
    let place = Place::new();
    let running = holder(&place, &["--ttl", "3s"], WILLING);
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    let broken = place.run(&["break", "x", "--id", &id, "--reason", "stuck since noon", "--yes"]);
    assert_eq!(broken.code, 0, "{}", broken.stderr);
    assert!(broken.stderr.contains("is held by sh (pid"), "{}", broken.stderr);
    let ended = running.end();
    assert_eq!(ended.code, 79, "{}", ended.stderr);
    for part in ["lost: broken by ", "stuck since noon", "may have overlapped"] {
        assert!(ended.stderr.contains(part), "{part:?} is not in {}", ended.stderr);
    }
    let again = place.run(&["break", "x", "--id", &id, "--reason", "again", "--yes"]);
    assert_eq!(again.code, 75, "{}", again.stderr);
}

/// The next renewal would come after twenty seconds, and say the same: here it is told before that.
#[test]
fn broken_by_an_operator_on_a_store_that_tells_at_once() {
    let Some(server) = start_or_skip(Redis::start) else { return };
    let place = Place::new();
    let on_redis = |args: &[&str]| {
        let mut command = place.bare(args);
        command.env("LEASEHOLD_STORE", server.url());
        command
    };
    let running = Running::start(&mut on_redis(&["run", "--ttl", "60s", "x", "--", "sh", "-c", WILLING]));
    place.wait_for_line("beat");
    let listens = || server.command(&["PUBSUB", "CHANNELS", "leasehold_breaks:*"]).unwrap() == "*1";
    wait_until("a holder that listens", listens);
    let shown = outcome(&mut on_redis(&["show", "x", "-o", "json"]));
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let id = shown["holders"][0]["id"].as_str().unwrap();
    let broken = outcome(&mut on_redis(&["break", "x", "--id", id, "--reason", "stuck since noon", "--yes"]));
    assert_eq!(broken.code, 0, "{}", broken.stderr);
    let begun = Instant::now();
    let ended = running.end();
    assert_eq!(ended.code, 79, "{}", ended.stderr);
    assert!(ended.stderr.contains("stuck since noon"), "{}", ended.stderr);
    assert!(begun.elapsed() < Duration::from_secs(12), "told after {:?}", begun.elapsed());
}

#[test]
fn broken_while_the_child_came_to_its_own_end() {
    let place = Place::new();
    let script = "echo beat >> $LOG; until [ -e go ]; do sleep 0.01; done";
    let running = holder(&place, &["--ttl", "60s"], script);
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["break", "x", "--id", &id, "--reason", "why", "--yes"]).code, 0);
    fs::write(place.path("go"), "").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, 79, "{}", ended.stderr);
    assert!(ended.stderr.contains("ended by itself"), "{}", ended.stderr);
}

#[test]
fn the_child_can_see_the_loss_and_go_on_if_asked_to() {
    let place = Place::new();
    let script = "echo beat >> $LOG; cat <&$LEASEHOLD_LOST_FD; echo told >> $LOG; exit 5";
    let running = holder(&place, &["--ttl", "3s", "--on-lost", "warn"], script);
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["break", "x", "--id", &id, "--reason", "why", "--yes"]).code, 0);
    let Outcome { code, stderr, .. } = running.end();
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("the command runs on, as asked"), "{stderr}");
    assert_eq!(place.log(), ["beat", "told"]);
}

#[test]
fn the_child_sees_the_loss_when_the_program_is_killed() {
    let place = Place::new();
    let script = "trap '' TERM; echo beat >> $LOG; cat <&$LEASEHOLD_LOST_FD; echo told >> $LOG; sleep 100";
    holder(&place, &["--ttl", "60s", "--grace", "2s"], script).kill();
    assert_eq!(place.run(&["run", "x", "--", "true"]).code, 0);
    assert_eq!(place.log(), ["beat", "told"]);
}

#[test]
fn a_dead_man_that_dies_is_replaced() {
    let place = Place::new();
    let running = holder(&place, &["--ttl", "60s", "--grace", "200ms"], STUBBORN);
    let first = dead_man_of(&running).unwrap();
    kill(first, Signal::SIGKILL).unwrap();
    wait_until("another dead-man", || dead_man_of(&running).is_some_and(|next| next != first));
    running.kill();
    next_holder_comes_after(&place);
}

#[test]
fn a_program_killed_while_it_starts_its_child_leaves_none_behind() {
    let place = Place::new();
    // When it has one child that is its dead-man; when it has two, the other being forked but perhaps not yet
    // itself: the moments at which a child could be forgotten.
    for round in 0..60 {
        let script = format!("echo start {round} $$ >> $LOG; exec sleep 100");
        let running = place.start(&["run", "--ttl", "60s", "x", "--", "sh", "-c", &script]);
        let wanted = 1 + round % 2;
        wait_closely(|| children_of(&running).len() >= wanted);
        running.kill();
    }
    // Whoever comes after them all finds none of them alive.
    assert_eq!(place.run(&["run", "x", "--", "true"]).code, 0);
    for line in place.log() {
        let pid = line.split_whitespace().nth(2).unwrap();
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!command.starts_with("sleep\x00100"), "child {pid} lives on: {line}");
    }
}

/// Looks without a pause between, for what is over soon.
fn wait_closely(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "gave up waiting for children");
        std::thread::yield_now();
    }
}

fn children_of(running: &Running) -> Vec<String> {
    let pid = running.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}

/// The dead-man that this program has started.
fn dead_man_of(running: &Running) -> Option<Pid> {
    let is_dead_man = |child: &String| {
        let command = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        command.contains("__dead-man")
    };
    let child = children_of(running).into_iter().find(is_dead_man)?;
    Some(Pid::from_raw(child.parse().ok()?))
}
