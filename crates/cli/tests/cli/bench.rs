//! `bench`: what it measures, what it writes, what it refuses and what it leaves behind.

use std::process::Command;

use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use serde_json::Value;

use crate::common::{Outcome, Place, outcome};

const ALL: [&str; 8] = ["uncontended", "counter", "handoff", "waiters", "rw", "semaphore", "held", "soak"];

/// All scenarios, small, on a store.
fn small(place: &Place, store: &str, more: &[&str]) -> Command {
    let head = ["--store", store, "bench", "--tasks", "12", "--seconds", "0.1"];
    place.bare(&[&head, &ALL[..], more].concat())
}

fn measured(command: &mut Command) -> Value {
    let Outcome { code, stdout, stderr } = outcome(command);
    assert_eq!(code, 0, "{stdout} {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout} {stderr}"))
}

/// Every scenario did something, nothing failed, and nobody was let in beside somebody else.
fn is_sound(report: &Value) {
    let scenarios = report["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.iter().map(|one| one["scenario"].as_str().unwrap()).collect::<Vec<_>>(), ALL);
    for one in scenarios {
        assert!(one["operations"].as_u64().is_some_and(|operations| operations > 0), "{one}");
        assert_eq!((one["exact"].as_bool(), one["failed"].as_u64()), (Some(true), Some(0)), "{one}");
        let at = |quantile: &str| one["latency"][quantile].as_f64().unwrap();
        assert!(0.0 < at("min") && at("min") <= at("p50") && at("p50") <= at("max"), "{one}");
    }
    for once in ["counter", "waiters", "held"] {
        let one = scenarios.iter().find(|one| one["scenario"] == once).unwrap();
        assert_eq!(one["operations"], 12, "{one}");
    }
}

#[test]
fn every_scenario_is_exact_within_a_process() {
    is_sound(&measured(&mut small(&Place::new(), "memory:", &["-o", "json"])));
}

#[test]
fn every_scenario_is_exact_on_a_file_and_nothing_stays_held() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path("locks.db").display());
    is_sound(&measured(&mut small(&place, &store, &["-o", "json", "--clients", "2"])));
    assert_eq!(place.run(&["ls", "-o", "json"]).stdout, "[]\n");
}

#[test]
fn every_scenario_is_exact_on_redis_in_each_layout() {
    let Some(server) = start_or_skip(Redis::start) else { return };
    let place = Place::new();
    for more in
        [&["-o", "json", "--clients", "3"][..], &["-o", "json", "--plain"], &["-o", "json", "--cohort", "8"]]
    {
        is_sound(&measured(&mut small(&place, &server.url(), more)));
    }
    let left = outcome(&mut place.bare(&["--store", &server.url(), "ls", "-o", "json"]));
    assert_eq!(left.stdout, "[]\n");
}

#[test]
fn people_get_a_table_and_a_page_of_its_own() {
    let place = Place::new();
    let seen =
        place.run(&["bench", "counter", "rw", "--tasks", "9", "--seconds", "0.3", "--html", "out.html"]);
    assert_eq!(seen.code, 0, "{}", seen.stderr);
    let lines: Vec<&str> = seen.stdout.lines().collect();
    assert!(lines[0].starts_with("SCENARIO") && lines[0].contains("PER SECOND"), "{}", seen.stdout);
    assert!(lines[1].starts_with("counter") && lines[1].ends_with("yes"), "{}", seen.stdout);
    assert!(lines[2].starts_with("rw") && lines.len() == 3, "{}", seen.stdout);
    assert!(seen.stderr.contains("leasehold-bench:") && !seen.stderr.contains('\u{1b}'), "{}", seen.stderr);
    let page = std::fs::read_to_string(place.path("out.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("<h2>counter</h2>") && page.contains("<polyline points=\""), "{page}");
    for elsewhere in ["http:", "https:", "<script", "src=", "url("] {
        assert!(!page.contains(elsewhere), "the page has {elsewhere} in it");
    }
}

#[test]
fn a_store_that_others_use_is_left_alone_unless_told_otherwise() {
    let place = Place::new();
    let holder = place.start(&["run", "order:42", "--", "sh", "-c", "echo held >> $LOG; sleep 600"]);
    place.wait_for_line("held");
    let refused = place.run(&["bench", "counter"]);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    assert!(refused.stderr.contains("order:42") && refused.stderr.contains("--yes"), "{}", refused.stderr);
    let told = place.run(&["bench", "counter", "--tasks", "3", "--yes", "-q"]);
    assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{}", told.stdout);
    holder.signal(nix::sys::signal::Signal::SIGTERM);
    holder.end();
}

#[test]
fn two_runs_at_a_time_do_not_measure_each_other() {
    let place = Place::new();
    let first = place.start(&["run", "leasehold-bench", "--", "sh", "-c", "echo held >> $LOG; sleep 600"]);
    place.wait_for_line("held");
    let second = place.run(&["bench", "counter"]);
    assert_eq!(second.code, 75, "{}", second.stderr);
    assert!(second.stderr.contains("another run of bench"), "{}", second.stderr);
    first.signal(nix::sys::signal::Signal::SIGTERM);
    first.end();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for wrong in
        [&["nonsense"][..], &["--tasks", "0"], &["--seconds", "0"], &["--cohort", "65"], &["--clients", "0"]]
    {
        let refused = place.run(&[&["bench"], wrong].concat());
        assert_eq!(refused.code, 64, "{wrong:?}: {}", refused.stderr);
    }
}
