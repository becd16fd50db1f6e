//! `ls` and `show`: who holds what, for people and for programs.

use std::process::{Command, Stdio};

use crate::common::Place;

#[test]
fn json_has_the_documented_shape() {
    let place = Place::new();
    assert_eq!(place.run(&["acquire", "order:42", "--label", "nightly"]).code, 0);
    let listed: serde_json::Value = serde_json::from_str(&place.run(&["ls", "-o", "json"]).stdout).unwrap();
    let lock = &listed[0];
    assert_eq!(*lock, place.show("order:42").fixed(lock));
    assert_eq!((lock["name"].as_str(), lock["kind"].as_str()), (Some("order:42"), Some("lock")));
    assert_eq!((lock["state"].as_str(), lock["waiters"].as_array().map(Vec::len)), (Some("held"), Some(0)));
    assert!(lock["store"].as_str().unwrap().starts_with("sqlite:"), "{lock}");
    let holder = &lock["holders"][0];
    for key in ["id", "owner", "host", "pid", "program", "label", "since", "expires_in_ms", "fence", "count"]
    {
        assert!(!holder[key].is_null(), "{key} is missing in {holder}");
    }
    let since = holder["since"].as_str().unwrap();
    assert!(since.len() == "2026-01-02T03:04:05.678Z".len() && since.ends_with('Z'), "{since}");
}

/// What differs between two looks at one lock.
trait Fixed {
    fn fixed(self, like: &Self) -> Self;
}

impl Fixed for serde_json::Value {
    fn fixed(mut self, like: &Self) -> Self {
        for key in ["expires_in_ms", "held_ms", "since"] {
            self["holders"][0][key] = like["holders"][0][key].clone();
        }
        // Only `show` looks for what was before.
        self.as_object_mut().unwrap().remove("history");
        self
    }
}

#[test]
fn a_prefix_narrows_the_list_and_is_not_shown_twice() {
    let place = Place::new();
    for name in ["a:1", "a:2", "b:1"] {
        assert_eq!(place.run(&["acquire", name]).code, 0);
    }
    let names = |args: &[&str]| -> Vec<String> {
        let listed: serde_json::Value = serde_json::from_str(&place.run(args).stdout).unwrap();
        let mut names: Vec<String> =
            listed.as_array().unwrap().iter().map(|lock| lock["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&["ls", "-o", "json"]), ["a:1", "a:2", "b:1"]);
    assert_eq!(names(&["ls", "a:", "-o", "json"]), ["a:1", "a:2"]);
    assert_eq!(names(&["--prefix", "a:", "ls", "-o", "json"]), ["1", "2"]);
    assert_eq!(names(&["ls", "--held-over", "1h", "-o", "json"]), [""; 0]);
}

#[test]
fn many_names_are_listed_page_after_page() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 501 ]; do set -- \"$@\" --all many:$i; i=$((i+1)); done; \
                  exec $EXE run --ttl 60s \"$@\" -- sh -c 'echo held >> $LOG; read x; sleep 100'";
    let mut command = place.leasehold(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("EXE", env!("CARGO_BIN_EXE_leasehold")).current_dir(place.path(""));
    for (key, value) in command.envs(std::iter::empty::<(&str, &str)>()).get_envs() {
        shell.env(key, value.unwrap_or_default());
    }
    let _holding = crate::common::Running::start(&mut shell);
    place.wait_for_line("held");
    let table = place.run(&["ls", "many:"]).stdout;
    assert_eq!(table.lines().count(), 502, "{table}");
    assert_eq!(table.matches("NAME").count(), 1);
    let old = place.run(&["ls", "many:", "--held-over", "1h"]).stdout;
    assert_eq!(old.lines().count(), 1, "one heading, however many pages nothing is left of: {old}");
}

#[test]
fn what_others_wrote_cannot_act_on_the_terminal() {
    let place = Place::new();
    let hostile = "\u{1b}]52;c;aGk=\u{7}\u{202e}x\u{9b}31m\u{7f}\u{3164}";
    assert_eq!(place.run(&["acquire", "a", "--label", hostile]).code, 0);
    let table = place.run(&["ls"]).stdout;
    assert!(table.contains("\\u{1b}]52;c;aGk=\\u{7}\\u{202e}x"), "{table}");
    for args in [
        &["ls"][..],
        &["show", "a"],
        &["run", "-n", "a", "--", "true"],
        &["ls", "-o", "json"],
        &["show", "a", "-o", "json"],
    ] {
        let said = place.run(args);
        let all = said.stdout + &said.stderr;
        assert!(
            !all.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}', '\u{7f}', '\u{3164}']),
            "{args:?}: {all:?}"
        );
    }
    assert_eq!(place.show("a")["holders"][0]["label"], hostile);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let mut child = place.leasehold(&["man"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}
