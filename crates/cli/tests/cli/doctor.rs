//! `doctor`: what it finds, for people and for programs, and how it ends.

use std::process::Command;

use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use serde_json::Value;

use crate::common::{Outcome, Place, outcome};

/// The binary on a store, and what it reports.
fn examined(command: &mut Command) -> (i32, Value) {
    let Outcome { code, stdout, stderr } = outcome(command);
    let report = serde_json::from_str(&stdout);
    (code, report.unwrap_or_else(|error| panic!("{error}: {stdout} {stderr}")))
}

fn severity<'a>(report: &'a Value, topic: &str) -> &'a str {
    let findings = report["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["topic"] == topic);
    finding.unwrap_or_else(|| panic!("no {topic} in {report}"))["severity"].as_str().unwrap()
}

fn on<'a>(place: &Place, store: &'a str, args: &[&'a str]) -> Command {
    place.bare(&[&["--store", store, "doctor"], args].concat())
}

#[test]
fn a_file_of_ones_own_is_fine() {
    let place = Place::new();
    let (code, report) = examined(&mut place.leasehold(&["doctor", "-o", "json"]));
    assert_eq!(code, 0, "{report}");
    for topic in ["reachable", "round-trip", "lock", "wake-up", "journal", "integrity", "file-rights"] {
        assert_eq!(severity(&report, topic), "good", "{report}");
    }
    assert!(["good", "note"].contains(&report["worst"].as_str().unwrap()), "{report}");
    assert_eq!(report["guarantee"]["level"], "S3");
    assert!(report["store"].as_str().unwrap().starts_with("sqlite:"), "{report}");
    assert_eq!(place.run(&["ls", "-o", "json"]).stdout, "[]\n");
}

#[test]
fn a_store_in_memory_is_noted_as_one() {
    let place = Place::new();
    let (code, report) = examined(&mut on(&place, "memory:", &["-o", "json"]));
    assert_eq!((code, report["worst"].as_str()), (0, Some("note")), "{report}");
    assert_eq!(severity(&report, "one-process"), "note");
}

#[test]
fn a_server_that_is_set_up_well_is_fine() {
    let Some(server) = start_or_skip(Redis::start_durable) else { return };
    let place = Place::new();
    let (code, report) = examined(&mut on(&place, &server.url(), &["-o", "json"]));
    assert_eq!((code, report["worst"].as_str()), (0, Some("good")), "{report:#}");
    assert_eq!(severity(&report, "wake-up"), "good");
    let seen = outcome(&mut on(&place, &server.url(), &[]));
    assert!(seen.stdout.contains("\n\n9 good\n"), "{}", seen.stdout);
    assert!(!seen.stdout.contains('\u{1b}') && !seen.stdout.contains("ACL SETUSER"), "{}", seen.stdout);
    let more = outcome(&mut on(&place, &server.url(), &["-v"]));
    assert!(more.stdout.contains("ACL SETUSER leasehold on >PASSWORD resetkeys ~* "), "{}", more.stdout);
}

#[test]
fn warnings_and_dangers_have_codes_of_their_own() {
    let Some(server) = start_or_skip(Redis::start) else { return };
    let place = Place::new();
    let seen = outcome(&mut on(&place, &server.url(), &[]));
    assert_eq!(seen.code, 1, "{}", seen.stdout);
    assert!(seen.stdout.contains("warning  persistence"), "{}", seen.stdout);
    for (setting, value) in [("maxmemory", "100mb"), ("maxmemory-policy", "volatile-lru")] {
        assert_eq!(server.command(&["CONFIG", "SET", setting, value]).unwrap(), "+OK");
    }
    let (code, report) = examined(&mut on(&place, &server.url(), &["-o", "json"]));
    assert_eq!((code, report["worst"].as_str()), (2, Some("danger")), "{report:#}");
    let last = report["findings"].as_array().unwrap().last().unwrap();
    assert_eq!((last["topic"].as_str(), last["severity"].as_str()), (Some("eviction"), Some("danger")));
    for key in ["what", "why", "remedy", "command"] {
        assert!(last[key].as_str().is_some_and(|said| !said.is_empty()), "{key} is missing in {last}");
    }
}

#[test]
fn what_a_user_may_not_do_is_told_with_the_line_that_allows_it() {
    let Some(server) = start_or_skip(Redis::start_durable) else { return };
    let words = ["ACL", "SETUSER", "eve", "on", ">hunter2", "~*", "&*", "+@all", "-hset"];
    assert_eq!(server.command(&words).unwrap(), "+OK");
    let place = Place::new();
    let store = format!("redis://eve:hunter2@{}", server.address());
    let Outcome { code, stdout, stderr } = outcome(&mut on(&place, &store, &[]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stdout.contains("the user \"eve\" may not run hset\n"), "{stdout}");
    let line = stdout.lines().find_map(|line| Some(&line[line.find("ACL SETUSER")?..])).unwrap();
    assert!(!(stdout.clone() + &stderr).contains("hunter2"), "{stdout}{stderr}");
    assert_eq!(server.command(&line.split(' ').collect::<Vec<_>>()).unwrap(), "+OK", "{line}");
    let (code, report) = examined(&mut on(&place, &store, &["-o", "json"]));
    assert_eq!(code, 0, "{report:#}");
    assert_eq!((severity(&report, "permissions"), severity(&report, "lock")), ("good", "good"));
}

#[test]
fn a_store_that_is_not_there_is_reported_too() {
    let Some(mut server) = start_or_skip(Redis::start) else { return };
    let (place, store) = (Place::new(), server.url());
    assert_eq!(server.command(&["CONFIG", "SET", "requirepass", "right"]).unwrap(), "+OK");
    let (code, report) = examined(&mut on(&place, &store, &["-o", "json"]));
    assert_eq!((code, severity(&report, "reachable")), (77, "danger"), "{report:#}");
    server.crash().unwrap();
    let (code, report) = examined(&mut on(&place, &store, &["-o", "json"]));
    assert_eq!((code, severity(&report, "reachable")), (69, "danger"), "{report:#}");
    assert_eq!(report["store"], Value::Null);
    let seen = outcome(&mut on(&place, &store, &[]));
    assert_eq!((seen.code, seen.stderr.as_str()), (69, ""));
    assert!(seen.stdout.contains("danger   reachable"), "{}", seen.stdout);
    let nonsense = outcome(&mut on(&place, "nonsense", &[]));
    assert_eq!((nonsense.code, nonsense.stdout.as_str()), (78, ""));
}

#[test]
fn names_are_judged_with_their_prefix() {
    let Some(server) = start_or_skip(Redis::start_durable) else { return };
    let place = Place::new();
    let judged = |prefix: &str, name: &str| {
        let mut command = on(&place, &server.url(), &["-o", "json", "--prefix", prefix, "--name", name]);
        severity(&examined(&mut command).1, "cluster-name").to_owned()
    };
    assert_eq!(judged("", "order:{42}"), "good");
    assert_eq!(judged("", "a}b"), "note");
    assert_eq!(judged("{app}:", "a}b"), "good");
    assert_eq!(outcome(&mut on(&place, &server.url(), &["--name", ""])).code, 64);
}
