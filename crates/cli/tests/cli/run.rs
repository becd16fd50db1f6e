//! `run`: who gets the lock, what the child finds, what the shell is told.

use std::fs;

use serde_json::Value;

use crate::common::{Place, Running, outcome};

const HOLD: [&str; 5] = ["run", "x", "--", "sh", "-c"];

/// Somebody who holds `x` until the file `go` is there.
fn holder(place: &Place, options: &[&str]) -> Running {
    let script = "echo held >> $LOG; until [ -e go ]; do sleep 0.01; done";
    let running = place.start(&[options, &HOLD, &[script]].concat());
    place.wait_for_line("held");
    running
}

fn let_go(place: &Place) {
    fs::write(place.path("go"), "").unwrap();
}

#[test]
fn a_held_lock_is_busy_and_says_who_holds_it() {
    let place = Place::new();
    let holding =
        place.start(&["run", "--label", "nightly", "x", "--", "sh", "-c", "echo held >> $LOG; sleep 100"]);
    place.wait_for_line("held");
    let busy = place.run(&["run", "--nonblock", "x", "--", "echo", "never"]);
    assert_eq!((busy.code, busy.stdout.as_str()), (75, ""));
    let host = nix_host();
    for part in [
        "\"x\" is busy",
        "held by sh (pid ",
        &host,
        ", user ",
        "\"nightly\"",
        "lease ends in",
        "did not wait",
    ] {
        assert!(busy.stderr.contains(part), "{part:?} is not in {}", busy.stderr);
    }
    assert!(busy.stderr.contains(&format!("pid {}", holding.pid())), "{}", busy.stderr);
}

fn nix_host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[test]
fn the_busy_code_can_be_chosen_and_the_wait_limited() {
    let place = Place::new();
    let holding = holder(&place, &[]);
    assert_eq!(place.run(&["run", "-n", "-E", "9", "x", "--", "true"]).code, 9);
    let waited = place.run(&["run", "-w", "50ms", "x", "--", "true"]);
    assert_eq!(waited.code, 75);
    assert!(waited.stderr.contains("gave up after"), "{}", waited.stderr);
    assert_eq!(place.run(&["-q", "run", "-n", "x", "--", "true"]).stderr, "");
    let_go(&place);
    assert_eq!(holding.end().code, 0);
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 0);
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released_and_says_how_long_it_waited() {
    let place = Place::new();
    let holding = holder(&place, &[]);
    let waiting = place.start(&["-v", "run", "--fair", "x", "--", "sh", "-c", "echo second >> $LOG"]);
    place.wait_for_waiter("x");
    let_go(&place);
    assert_eq!(holding.end().code, 0);
    let waited = waiting.end();
    assert_eq!(waited.code, 0);
    assert!(waited.stderr.contains("\"x\" acquired after"), "{}", waited.stderr);
    assert_eq!(place.log(), ["held", "second"]);
}

#[test]
fn shared_holders_meet_and_keep_writers_out() {
    let place = Place::new();
    let reading = holder(&place, &[]);
    let_go(&place);
    assert_eq!(reading.end().code, 0);
    fs::remove_file(place.path("go")).unwrap();
    let script = "echo reads >> $LOG; until [ -e go ]; do sleep 0.01; done";
    let reading = place.start(&["run", "-s", "x", "--", "sh", "-c", script]);
    place.wait_for_line("reads");
    assert_eq!(place.run(&["run", "-n", "-s", "x", "--", "true"]).code, 0);
    assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 75);
    let_go(&place);
    assert_eq!(reading.end().code, 0);
}

#[test]
fn permits_run_out() {
    let place = Place::new();
    let script = "echo held >> $LOG; until [ -e go ]; do sleep 0.01; done";
    let holding = place.start(&["run", "--permits", "2/3", "pool", "--", "sh", "-c", script]);
    place.wait_for_line("held");
    assert_eq!(place.run(&["run", "-n", "--permits", "1/3", "pool", "--", "true"]).code, 0);
    assert_eq!(place.run(&["run", "-n", "--permits", "2/3", "pool", "--", "true"]).code, 75);
    // The same name is not a lock at the same time.
    assert_eq!(place.run(&["run", "-n", "pool", "--", "true"]).code, 64);
    let_go(&place);
    assert_eq!(holding.end().code, 0);
}

#[test]
fn the_child_is_told_what_it_holds() {
    let place = Place::new();
    let script = "echo $LEASEHOLD_NAME $LEASEHOLD_FENCE $LEASEHOLD_ID $LEASEHOLD_OWNER";
    let first = place.run(&["run", "x", "--", "sh", "-c", script]).stdout;
    let words: Vec<&str> = first.split_whitespace().collect();
    assert_eq!(words[0], "x");
    assert!(words[2].starts_with(words[3]), "{first}");
    let second = place.run(&["run", "x", "--", "sh", "-c", "echo $LEASEHOLD_FENCE"]).stdout;
    assert!(second.trim().parse::<u64>().unwrap() > words[1].parse::<u64>().unwrap());
}

#[test]
fn several_names_are_held_together_with_fences_in_the_order_given() {
    let place = Place::new();
    // So that their fences differ.
    for name in ["b", "b", "b", "a", "a"] {
        assert_eq!(place.run(&["run", name, "--", "true"]).code, 0);
    }
    let fence = |name: &str| {
        let script = "echo $LEASEHOLD_FENCE";
        place.run(&["run", name, "--", "sh", "-c", script]).stdout.trim().parse::<u64>().unwrap()
    };
    let (before_a, before_b) = (fence("a"), fence("b"));
    let script =
        "echo $LEASEHOLD_NAME $LEASEHOLD_FENCE; echo held >> $LOG; until [ -e go ]; do sleep 0.01; done";
    let both = place.start(&["run", "--all", "b", "--all", "a", "--", "sh", "-c", script]);
    place.wait_for_line("held");
    for name in ["a", "b"] {
        assert_eq!(place.run(&["run", "-n", name, "--", "true"]).code, 75);
    }
    let third = place.run(&["run", "-n", "--all", "c", "--all", "b", "--", "true"]);
    assert_eq!(third.code, 75);
    assert_eq!(place.show("c")["state"], "free", "all or nothing");
    let_go(&place);
    let said = both.end().stdout;
    let (names, fences) = said.trim().split_once(' ').unwrap();
    let fences: Vec<u64> = fences.split(',').map(|fence| fence.parse().unwrap()).collect();
    assert_eq!(names, "b,a");
    assert!(fences[0] > before_b && fences[1] > before_a, "{fences:?}");
    assert_eq!(place.run(&["run", "x", "--all", "a", "--", "true"]).code, 64);
}

#[test]
fn a_run_inside_itself_fails_at_once() {
    let place = Place::new();
    let exe = env!("CARGO_BIN_EXE_leasehold");
    for inner in ["run x", "run -s x", "run --permits 1/2 x", "run --all y --all x"] {
        let nested = place.run(&["run", "x", "--", "sh", "-c", &format!("{exe} {inner} -- echo never")]);
        assert_eq!((nested.code, nested.stdout.as_str()), (64, ""), "{inner}");
        assert!(nested.stderr.contains("would wait for itself"), "{}", nested.stderr);
    }
    let other = place.run(&["run", "x", "--", exe, "run", "y", "--", "echo", "fine"]);
    assert_eq!((other.code, other.stdout.as_str()), (0, "fine\n"));
    assert_eq!(
        place.run(&["run", "x", "--", exe, "run", "-n", "x", "--", "true"]).code,
        75,
        "it does not wait"
    );
}

#[test]
fn a_run_inside_may_share_what_the_one_around_it_leaves() {
    let place = Place::new();
    let nested = |outer: &[&str], inner: &[&str]| {
        let exe = env!("CARGO_BIN_EXE_leasehold");
        place.run(&[&["run"], outer, &["--", exe, "run"], inner, &["--", "echo", "fine"]].concat()).code
    };
    assert_eq!(nested(&["-s", "x"], &["-s", "x"]), 0);
    assert_eq!(nested(&["-s", "x"], &["x"]), 64);
    assert_eq!(nested(&["--permits", "1/3", "pool"], &["--permits", "2/3", "pool"]), 0);
    assert_eq!(nested(&["--permits", "2/3", "pool"], &["--permits", "2/3", "pool"]), 64);
}

#[test]
fn a_hold_that_has_ended_forbids_nothing_to_those_who_remember_it() {
    let place = Place::new();
    let remembered = place.run(&["run", "x", "--", "sh", "-c", "printf %s $LEASEHOLD_HELD"]).stdout;
    assert!(!remembered.is_empty());
    let later = outcome(place.leasehold(&["run", "x", "--", "true"]).env("LEASEHOLD_HELD", remembered));
    assert_eq!(later.code, 0, "{}", later.stderr);
}

#[test]
fn nothing_of_ours_leaks_into_the_child() {
    let place = Place::new();
    let plain = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap().lines().count();
    let under = place.run(&["run", "x", "--", "ls", "/proc/self/fd"]).stdout.lines().count();
    // The one more is LEASEHOLD_LOST_FD.
    assert_eq!(under, plain + 1);
}

#[test]
fn the_status_file_says_what_really_happened() {
    let place = Place::new();
    let status = |args: &[&str]| -> (i32, Value) {
        let code = place.run(&[&["run", "--status-file", "status"], args].concat()).code;
        let line = fs::read_to_string(place.path("status")).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        (code, serde_json::from_str(&line).unwrap())
    };
    let (code, told) = status(&["x", "--", "sh", "-c", "exit 76"]);
    assert_eq!((code, &told["outcome"], &told["child_code"]), (76, &Value::from("exited"), &Value::from(76)));
    assert_eq!((&told["names"][0], told["fences"][0].as_u64()), (&Value::from("x"), Some(1)));
    let (code, told) = status(&["x", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(
        (code, &told["outcome"], &told["child_signal"]),
        (143, &Value::from("signaled"), &Value::from(15))
    );
    let (code, told) = status(&["x", "--", "./nowhere"]);
    assert_eq!((code, &told["outcome"]), (127, &Value::from("not_found")));
    let (code, told) = status(&["--max-run", "10ms", "x", "--", "sleep", "100"]);
    assert_eq!((code, &told["outcome"]), (124, &Value::from("max_run")));
    let holding = holder(&place, &[]);
    let (code, told) = status(&["-n", "x", "--", "true"]);
    assert_eq!((code, &told["outcome"]), (75, &Value::from("busy")));
    assert!(told["holders"].as_str().unwrap().contains("held by sh"), "{told}");
    let_go(&place);
    assert_eq!(holding.end().code, 0);
    let leftovers = fs::read_dir(place.path(""))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".new"));
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn the_status_file_may_be_a_link_or_a_pipe() {
    let place = Place::new();
    std::os::unix::fs::symlink("real", place.path("link")).unwrap();
    // At first the link leads nowhere.
    for name in ["x", "y"] {
        assert_eq!(place.run(&["run", "--status-file", "link", name, "--", "true"]).code, 0);
        assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
        assert!(fs::read_to_string(place.path("real")).unwrap().contains(&format!("[\"{name}\"]")));
    }
    let piped = place.run(&["run", "--status-file", "/dev/stdout", "x", "--", "true"]);
    assert_eq!((piped.code, piped.stdout.lines().count()), (0, 1), "{}", piped.stderr);
    let nowhere = place.run(&["run", "--status-file", "/dev/null", "x", "--", "true"]);
    assert_eq!((nowhere.code, nowhere.stderr.as_str()), (0, ""));
}

#[test]
fn max_run_stops_the_whole_group() {
    let place = Place::new();
    let script =
        "trap '' TERM; (trap '' TERM; while :; do echo beat >> $LOG; sleep 0.01; done) & wait; sleep 100";
    let ran = place.run(&["run", "--max-run", "100ms", "--grace", "100ms", "x", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 124, "{}", ran.stderr);
    assert_eq!(place.run(&["run", "x", "--", "sh", "-c", "echo second >> $LOG"]).code, 0);
    assert_eq!(place.log().last().unwrap(), "second");
}

#[test]
fn max_hold_and_a_lease_that_is_not_renewed_end_with_76() {
    let place = Place::new();
    for options in [["--max-hold", "300ms"], ["--no-renew", "--ttl=300ms"]] {
        let ran = place.run(&[&["run"], &options[..], &["x", "--", "sleep", "100"]].concat());
        assert_eq!(ran.code, 76, "{}", ran.stderr);
        assert!(ran.stderr.contains("the command was stopped"), "{}", ran.stderr);
    }
}

#[test]
fn leases_are_renewed_for_as_long_as_the_child_runs() {
    let place = Place::new();
    // Several leases long; the end of each would stop the child.
    let ran = place.run(&["run", "--ttl", "3s", "x", "--", "sleep", "7"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn stdin_is_the_childs() {
    use std::io::Write;
    let place = Place::new();
    let mut command = place.leasehold(&["run", "x", "--", "cat"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.stdout, b"through");
}
