//! `elect`: a command that runs where the leader is, and who leads.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Stdio},
};

use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{Place, Running, outcome, wait_until};

/// Shows that it leads, and lives until it is told to end.
const LEADING: &str = "echo $NODE leads $LEASEHOLD_FENCE >> $LOG; while :; do sleep 0.02; done";

fn node(place: &Place, store: Option<&str>, name: &str, options: &[&str], script: &str) -> Running {
    let mut command = place.leasehold(&[&["elect", "x"], options, &["--", "sh", "-c", script]].concat());
    if let Some(store) = store {
        command.env("LEASEHOLD_STORE", store);
    }
    Running::start(command.env("NODE", name))
}

/// The fence that a node wrote down when it began to lead.
fn fence(place: &Place, node: &str) -> u64 {
    let begins = format!("{node} leads ");
    place.wait_for_line(&begins);
    place.log().iter().find_map(|line| line.strip_prefix(&begins)?.parse().ok()).unwrap()
}

/// `--observe`, with its lines as they come.
struct Observer(Child, Lines<BufReader<ChildStdout>>);

impl Observer {
    fn start(place: &Place, more: &[&str]) -> Self {
        let args = [&["elect", "x", "--observe", "--every", "10ms"], more].concat();
        let mut child = place.leasehold(&args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self(child, lines)
    }

    fn line(&mut self) -> String {
        self.1.next().unwrap().unwrap()
    }

    /// The next leader that has said something, or that there is none.
    fn leader(&mut self) -> Value {
        loop {
            let told: Value = serde_json::from_str(&self.line()).unwrap();
            let leader = told["leader"].clone();
            if leader.is_null() || !leader["value"].is_null() {
                return leader;
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_leads_and_the_next_one_when_it_ends() {
    let place = Place::new();
    let first = node(&place, None, "first", &[], LEADING);
    let before = fence(&place, "first");
    let second = node(&place, None, "second", &["-v"], LEADING);
    place.wait_for_waiter("x");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.end().code, 143, "the command's own end");
    assert!(fence(&place, "second") > before);
    second.signal(Signal::SIGTERM);
    let ended = second.end();
    assert_eq!(ended.code, 143);
    assert!(ended.stderr.contains("leads \"x\" after "), "{}", ended.stderr);
    assert!(place.show("x")["holders"].as_array().unwrap().is_empty(), "it resigned");
}

#[test]
fn observers_are_told_a_line_for_each_leader() {
    let place = Place::new();
    let mut observer = Observer::start(&place, &["-o", "json"]);
    assert_eq!(observer.leader(), Value::Null);
    let node = node(&place, None, "one", &["--value", "10.0.0.7:8080", "--label", "why"], LEADING);
    let leader = observer.leader();
    assert_eq!((&leader["value"], &leader["program"]), (&"10.0.0.7:8080".into(), &"sh".into()));
    assert_eq!(leader["fence"], fence(&place, "one"));
    let holder = place.show("x")["holders"][0].clone();
    assert_eq!((&leader["id"], &holder["label"]), (&holder["id"], &"why".into()));
    assert_eq!(holder["location"], "the command line");
    let line = Observer::start(&place, &[]).line();
    assert!(line.contains(" leads, fence ") && line.ends_with("\"10.0.0.7:8080\""), "{line}");
    node.signal(Signal::SIGTERM);
    node.end();
    assert_eq!(observer.leader(), Value::Null);
}

#[test]
fn who_does_not_wait_is_told_who_leads() {
    let place = Place::new();
    let node = node(&place, None, "one", &[], LEADING);
    fence(&place, "one");
    let other = place.run(&["elect", "x", "-n", "--", "echo", "never"]);
    assert_eq!((other.code, other.stdout.as_str()), (75, ""));
    assert!(other.stderr.starts_with("leasehold: \"x\" is led by another: held by sh"), "{}", other.stderr);
    let quiet = place.run(&["-q", "elect", "x", "-w", "10ms", "-E", "9", "--", "echo", "never"]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (9, "", ""));
    drop(node);
}

#[test]
fn a_candidate_leaves_the_line_when_told_to_end() {
    let place = Place::new();
    let leader = node(&place, None, "one", &[], LEADING);
    fence(&place, "one");
    let candidate = node(&place, None, "two", &["--again"], LEADING);
    place.wait_for_waiter("x");
    candidate.signal(Signal::SIGINT);
    assert_eq!(candidate.end().code, 130);
    assert!(place.show("x")["waiters"].as_array().unwrap().is_empty());
    drop(leader);
}

#[test]
fn again_it_leads_when_its_command_has_ended() {
    let place = Place::new();
    let script = "echo $NODE leads $LEASEHOLD_FENCE >> $LOG; exit 3";
    let node = node(&place, None, "one", &["--again"], script);
    wait_until("a second term", || place.log().len() >= 2);
    node.signal(Signal::SIGTERM);
    assert!([143, 3].contains(&node.end().code), "it ends between terms, or with its command");
    let mut fences = place.log();
    fences.dedup();
    assert_eq!(fences, place.log(), "every term has a fence of its own");
}

#[test]
fn again_it_leads_when_its_lead_was_broken() {
    let place = Place::new();
    let node = node(&place, None, "one", &["--again", "--ttl", "3s"], LEADING);
    fence(&place, "one");
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["break", "x", "--id", &id, "--reason", "why", "--yes"]).code, 0);
    wait_until("another term", || place.log().len() >= 2);
    node.signal(Signal::SIGTERM);
    let ended = node.end();
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    assert!(ended.stderr.contains("lost: broken by "), "{}", ended.stderr);
}

#[test]
fn a_leader_frozen_beyond_its_lease_is_followed_by_another_on_sqlite() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path("locks.db").display());
    frozen(&place, &store);
}

#[test]
fn a_leader_frozen_beyond_its_lease_is_followed_by_another_on_redis() {
    let Some(redis) = start_or_skip(Redis::start) else { return };
    frozen(&Place::new(), &redis.url());
}

/// The program that leads is stopped; its command lives on and writes for as long as it may. Another leads, and from then on
/// the first writes nothing; and when it wakes it says so.
fn frozen(place: &Place, store: &str) {
    let beating = "trap '' TERM; echo $NODE leads $LEASEHOLD_FENCE >> $LOG; \
                   while :; do echo $NODE beats >> $LOG; sleep 0.01; done";
    let first = node(place, Some(store), "first", &["--ttl", "2s"], beating);
    let before = fence(place, "first");
    let shown = outcome(place.leasehold(&["show", "x", "-o", "json"]).env("LEASEHOLD_STORE", store));
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let left = shown["holders"][0]["expires_in_ms"].as_u64().unwrap();
    assert!(left <= 2000, "within its lease another leads: {left} ms are left of it");
    let second = node(place, Some(store), "second", &["--ttl", "2s"], LEADING);
    first.signal(Signal::SIGSTOP);
    assert!(fence(place, "second") > before);
    first.signal(Signal::SIGCONT);
    let ended = first.end();
    assert_eq!(ended.code, 76, "{}", ended.stderr);
    assert!(ended.stderr.contains("the command was stopped"), "{}", ended.stderr);
    let log = place.log();
    assert!(log.last().unwrap().starts_with("second leads"), "the first wrote on: {:?}", log.last());
    second.signal(Signal::SIGTERM);
    assert_eq!(second.end().code, 143);
}
