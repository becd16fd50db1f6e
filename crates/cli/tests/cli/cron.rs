//! `cron` and `job`: commands that run once per slot, and what is known of them.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{Place, wait_until};

/// Every second, as many as come.
const TICK: [&str; 7] = ["cron", "tick", "--schedule", "* * * * * *", "--at-most", "1m", "--"];

fn job(place: &Place, name: &str) -> Value {
    serde_json::from_str(&place.run(&["job", "show", name, "-o", "json"]).stdout).unwrap_or_default()
}

fn total(place: &Place, name: &str, what: &str) -> u64 {
    job(place, name)["totals"][what].as_u64().unwrap_or(0)
}

#[test]
fn without_a_schedule_it_runs_once_and_counts_for_a_while() {
    let place = Place::new();
    let script = "echo $LEASEHOLD_NAME $LEASEHOLD_SLOT >> $LOG; exit 7";
    let once = ["cron", "report", "--at-most", "1m", "--at-least", "1h", "--", "sh", "-c", script];
    let first = place.run(&once);
    assert_eq!(first.code, 7, "the command's own: {}", first.stderr);
    let second = place.run(&[&["-v"], &once[..]].concat());
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert!(
        second.stderr.contains("\"report\" is not run: the last run counts until 2"),
        "{}",
        second.stderr
    );
    let chosen = place.run(&["cron", "report", "-E", "9", "--at-most", "1m", "--", "true"]);
    assert_eq!((chosen.code, chosen.stderr.as_str()), (9, ""));
    assert_eq!(place.log().len(), 1);
    let job = job(&place, "report");
    assert_eq!((&job["state"], &job["schedule"]), (&"resting".into(), &Value::Null));
    let run = &job["runs"][0];
    assert_eq!((&run["outcome"], &run["why"]), (&"failed".into(), &"the command ended with code 7".into()));
    assert_eq!(place.log()[0], format!("report {}", run["slot"].as_str().unwrap()));
}

#[test]
fn slots_are_run_until_it_is_told_to_end() {
    let place = Place::new();
    let running = place.start(&[&TICK[..], &["sh", "-c", "echo $LEASEHOLD_SLOT >> $LOG"]].concat());
    wait_until("two slots", || place.log().len() >= 2);
    running.signal(Signal::SIGTERM);
    assert!([143, 0].contains(&running.end().code));
    let mut slots = place.log();
    slots.dedup();
    assert_eq!(slots, place.log());
    assert!(total(&place, "tick", "done") >= 1);
    let listed = place.run(&["job", "ls"]);
    assert!(listed.stdout.contains("tick  * * * * * *  "), "{}", listed.stdout);
}

#[test]
fn a_signal_is_the_commands_while_it_runs_and_then_it_ends() {
    let place = Place::new();
    let script = "trap 'echo told >> $LOG; exit 3' TERM; echo up >> $LOG; while :; do sleep 0.02; done";
    let running = place.start(&[&TICK[..], &["sh", "-c", script]].concat());
    place.wait_for_line("up");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().code, 3);
    assert_eq!(place.log(), ["up", "told"]);
    assert_eq!(total(&place, "tick", "failed"), 1);
}

#[test]
fn a_command_that_takes_too_long_is_stopped() {
    let place = Place::new();
    let stopped = place.run(&["cron", "slow", "--at-most", "1s", "--", "sleep", "1000"]);
    assert_eq!(stopped.code, 76);
    assert!(stopped.stderr.contains("--at-most of 1s is over"), "{}", stopped.stderr);
    let runs = job(&place, "slow")["runs"].clone();
    assert!(["failed", "lost"].contains(&runs[0]["outcome"].as_str().unwrap()), "{runs}");
}

#[test]
fn a_paused_job_is_not_run_until_it_is_resumed() {
    let place = Place::new();
    let paused = place.run(&["job", "pause", "report", "--reason", "the disk is full"]);
    assert_eq!(
        (paused.code, paused.stderr.as_str()),
        (0, "leasehold: \"report\" is paused; nobody has run it yet\n")
    );
    let skipped = place.run(&["cron", "report", "--at-most", "1m", "--", "echo", "never"]);
    assert_eq!((skipped.code, skipped.stdout.as_str()), (0, ""));
    assert!(skipped.stderr.contains("paused by "), "{}", skipped.stderr);
    assert!(skipped.stderr.contains("the disk is full"), "{}", skipped.stderr);
    assert_eq!(job(&place, "report")["state"], "paused");
    assert_eq!(place.run(&["job", "resume", "report"]).stderr, "leasehold: \"report\" goes on\n");
    assert_eq!(place.run(&["job", "resume", "report"]).stderr, "leasehold: \"report\" was not paused\n");
    assert_eq!(place.run(&["cron", "report", "--at-most", "1m", "--", "echo", "now"]).stdout, "now\n");
    let shown = place.run(&["job", "show", "report"]);
    assert!(shown.stdout.starts_with("report is waiting\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("1 done, 0 failed"), "{}", shown.stdout);
    let again = place.run(&["job", "pause", "report", "--reason", "again"]);
    assert_eq!(again.stderr, "leasehold: \"report\" is paused\n", "somebody has run it");
    let from_now = place.run(&["job", "resume", "report", "--from-now"]);
    assert_eq!(from_now.stderr, "leasehold: \"report\" goes on from now\n");
}

#[test]
fn a_job_can_be_forgotten() {
    let place = Place::new();
    assert_eq!(place.run(&["job", "forget", "report"]).stderr, "leasehold: \"report\" was not known\n");
    assert_eq!(place.run(&["cron", "report", "--at-most", "1m", "--", "true"]).code, 0);
    assert_eq!(place.run(&["job", "forget", "report"]).stderr, "leasehold: \"report\" is forgotten\n");
    wait_until("it is gone", || place.run(&["job", "show", "report"]).code == 64);
}

#[test]
fn a_run_is_seen_while_it_goes_on_and_others_let_it() {
    let place = Place::new();
    let script = "echo up >> $LOG; until [ -e go ]; do sleep 0.01; done";
    let running = place.start(&["cron", "long", "--at-most", "1m", "--", "sh", "-c", script]);
    place.wait_for_line("up");
    let seen = job(&place, "long");
    assert_eq!((&seen["state"], &seen["running"]["program"]), (&"running".into(), &"sh".into()));
    let other = place.run(&["-v", "cron", "long", "--at-most", "1m", "--", "true"]);
    assert!(other.stderr.contains("\"long\" is not run: held by sh"), "{}", other.stderr);
    std::fs::write(place.path("go"), "").unwrap();
    assert_eq!(running.end().code, 0);
    assert_eq!(total(&place, "long", "done"), 1);
}

#[test]
fn one_that_was_killed_is_shown_as_dead() {
    let place = Place::new();
    let script = "echo up >> $LOG; sleep 1000";
    let running = place.start(&["cron", "dead", "--at-most", "1h", "--", "sh", "-c", script]);
    place.wait_for_line("up");
    running.kill();
    wait_until("its death is known", || job(&place, "dead")["state"] == "waiting");
    assert_eq!(job(&place, "dead")["runs"][0]["outcome"], "died");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    let place = Place::new();
    for (args, said) in [
        (&["--schedule", "0 25 * * *", "--at-most", "1h"][..], "is not a schedule"),
        (
            &["--schedule", "0 2 * * *", "--zone", "Europe/Berln", "--at-most", "1h"],
            "did you mean \"Europe/Berlin\"?",
        ),
        (&["--zone", "UTC", "--at-most", "1h"], "--schedule"),
        (&["--schedule", "0 2 * * *"], "--at-most"),
        (&["--at-most", "1h", "--catch-up", "some"], "latest, all, skip"),
    ] {
        let refused = place.run(&[&["cron", "x"], args, &["--", "true"]].concat());
        assert_eq!(refused.code, 64, "{}", refused.stderr);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let unknown = place.run(&["job", "show", "nothing"]);
    assert_eq!(unknown.code, 64);
    assert!(unknown.stderr.contains("not a job that anybody has run"), "{}", unknown.stderr);
    let missing = place.run(&["cron", "x", "--at-most", "1h", "--", "no-such-command"]);
    assert_eq!(missing.code, 127);
    assert!(missing.stderr.contains("no-such-command: command not found"), "{}", missing.stderr);
}
