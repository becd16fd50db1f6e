//! Tickets: a lock that spans several commands.

use std::{io::Write, process::Stdio};

use crate::common::{Place, Running};

#[test]
fn a_ticket_holds_the_lock_across_processes() {
    let place = Place::new();
    let acquired = place.run(&["acquire", "x", "--ttl", "60s", "--label", "deploy"]);
    assert_eq!(acquired.code, 0, "{}", acquired.stderr);
    let ticket = acquired.stdout.trim();
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 75);
    assert_eq!(place.show("x")["holders"][0]["label"], "deploy");
    assert_eq!(place.run(&["renew", ticket, "--ttl", "90s"]).code, 0);
    assert!(place.show("x")["holders"][0]["expires_in_ms"].as_u64().unwrap() > 60_000);
    assert_eq!(place.run(&["release", ticket]).code, 0);
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
}

#[test]
fn a_ticket_that_is_lost_says_so() {
    let place = Place::new();
    let ticket = place.run(&["acquire", "x", "--ttl", "60s"]).stdout;
    assert_eq!(place.run(&["release", ticket.trim()]).code, 0);
    for verb in ["renew", "release"] {
        let gone = place.run(&[verb, ticket.trim()]);
        assert_eq!(gone.code, 76, "{}", gone.stderr);
    }
    let ticket = place.run(&["acquire", "x", "--ttl", "60s"]).stdout;
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["break", "x", "--id", &id, "--reason", "why", "--yes"]).code, 0);
    let broken = place.run(&["renew", ticket.trim()]);
    assert_eq!(broken.code, 79, "{}", broken.stderr);
}

#[test]
fn whoever_breaks_a_lock_says_why_and_it_is_in_the_history() {
    let place = Place::new();
    assert_eq!(place.run(&["acquire", "x", "--label", "deploy"]).code, 0);
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    for reason in ["", " ", &"x".repeat(501)] {
        let refused = place.run(&["break", "x", "--id", &id, "--reason", reason, "--yes"]);
        assert!(refused.code == 64 && refused.stderr.contains("say why"), "{reason:?}: {}", refused.stderr);
    }
    assert_eq!(place.show("x")["state"], "held");
    assert_eq!(place.run(&["break", "x", "--id", &id, "--reason", "stuck", "--yes"]).code, 0);
    let past = place.show("x")["history"].clone();
    assert_eq!((past[0]["id"].as_str(), past[0]["how"].as_str()), (Some(&*id), Some("broken")), "{past}");
    assert_eq!((past[0]["label"].as_str(), past[0]["why"].as_str()), (Some("deploy"), Some("stuck")));
}

#[test]
fn a_ticket_can_come_from_stdin() {
    let place = Place::new();
    let ticket = place.run(&["acquire", "x"]).stdout;
    let mut release = place.leasehold(&["release", "-"]);
    let mut child = release.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(ticket.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(place.show("x")["state"], "free");
}

#[test]
fn a_ticket_that_cannot_be_handed_over_is_given_back() {
    let place = Place::new();
    let (reader, gone) = std::io::pipe().unwrap();
    drop(reader);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for stdout in [Stdio::from(gone), Stdio::from(full)] {
        let acquired = place.leasehold(&["acquire", "x"]).stdout(stdout).output().unwrap();
        let said = String::from_utf8(acquired.stderr).unwrap();
        assert_eq!(acquired.status.code(), Some(125), "{said}");
        assert!(said.contains("cannot write to stdout") && said.contains("the lock is released"), "{said}");
        assert_eq!(place.show("x")["state"], "free");
    }
}

#[test]
fn acquire_does_not_wait_if_told_not_to() {
    let place = Place::new();
    assert_eq!(place.run(&["acquire", "x"]).code, 0);
    for patience in [&["-n"][..], &["-w", "20ms"]] {
        let busy = place.run(&[&["acquire", "x"], patience].concat());
        assert_eq!((busy.code, busy.stdout.as_str()), (75, ""));
        assert!(busy.stderr.contains("is busy: held by leasehold (pid"), "{}", busy.stderr);
    }
    let shared = place.run(&["acquire", "y", "-s"]);
    assert_eq!(shared.code, 0);
    assert_eq!(place.run(&["acquire", "y", "-s", "-n"]).code, 0);
    assert_eq!(place.run(&["acquire", "z", "--permits", "1/2"]).code, 0);
}

#[test]
fn a_waiting_acquire_gets_the_lock_when_the_ticket_is_released() {
    let place = Place::new();
    let ticket = place.run(&["acquire", "x"]).stdout;
    let waiting = Running::start(&mut place.leasehold(&["acquire", "--fair", "x"]));
    place.wait_for_waiter("x");
    assert_eq!(place.run(&["release", ticket.trim()]).code, 0);
    let got = waiting.end();
    assert_eq!(got.code, 0);
    assert!(got.stdout.starts_with("lh1/"), "{}", got.stdout);
}
