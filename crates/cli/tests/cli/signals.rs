//! Signals: passed on to the child, and obeyed by those who wait.

use std::fs;

use nix::sys::signal::Signal;

use crate::common::{Place, Running, undisturbed};

#[test]
fn signals_go_to_the_child_and_the_lock_stays_until_it_ends() {
    let place = Place::new();
    let names = ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT", "TSTP"];
    let traps = names.map(|name| format!("trap 'echo {name} >> $LOG' {name}; ")).concat();
    // A shell heeds a signal at once while it waits for what it runs in the background.
    let script = traps + "echo ready >> $LOG; until [ -e go ]; do sleep 0.05 & wait $!; done; exit 5";
    let running = place.start(&["run", "x", "--", "sh", "-c", &script]);
    place.wait_for_line("ready");
    for name in names {
        running.signal(format!("SIG{name}").parse::<Signal>().unwrap());
        place.wait_for_line(name);
        assert_eq!(place.run(&["run", "-n", "x", "--", "true"]).code, 75, "{name}");
    }
    fs::write(place.path("go"), "").unwrap();
    assert_eq!(running.end().code, 5);
}

#[test]
fn a_child_ended_by_a_signal_is_128_and_the_signal() {
    let place = Place::new();
    let running = place.start(&["run", "x", "--", "sh", "-c", "echo ready >> $LOG; exec sleep 100"]);
    place.wait_for_line("ready");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().code, 143);
}

#[test]
fn whoever_waits_leaves_the_line_when_told_to_end() {
    let place = Place::new();
    let holding = place.start(&["run", "x", "--", "sh", "-c", "echo held >> $LOG; read line; sleep 100"]);
    place.wait_for_line("held");
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let waiting = place.start(&["run", "--fair", "x", "--", "echo", "never"]);
        place.wait_for_waiter("x");
        waiting.signal(signal);
        let ended = waiting.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{}", ended.stderr);
        assert_eq!(place.show("x")["waiters"].as_array().unwrap().len(), 0);
    }
    holding.signal(Signal::SIGTERM);
    assert_eq!(holding.end().code, 143);
}

#[test]
fn a_signal_ignored_from_the_start_stays_ignored() {
    let place = Place::new();
    let inner = "echo ready >> $LOG; until [ -e go ]; do sleep 0.01; done; exit 6";
    let running = start_ignoring(&place, &["run", "x", "--", "sh", "-c", inner]);
    place.wait_for_line("ready");
    for signal in IGNORED {
        running.signal(signal);
    }
    fs::write(place.path("go"), "").unwrap();
    assert_eq!(running.end().code, 6);
}

#[test]
fn whoever_waits_and_ignores_a_signal_from_the_start_stays_in_line() {
    let place = Place::new();
    let holding = place.start(&["run", "x", "--", "sh", "-c", "echo held >> $LOG; exec sleep 100"]);
    place.wait_for_line("held");
    let waiting = start_ignoring(&place, &["run", "--fair", "x", "--", "echo", "served"]);
    place.wait_for_waiter("x");
    for signal in IGNORED {
        waiting.signal(signal);
    }
    holding.signal(Signal::SIGTERM);
    assert_eq!(holding.end().code, 143);
    let ended = waiting.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "served\n"), "{}", ended.stderr);
}

/// What `nohup` and a background job of a script ignore.
const IGNORED: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];

/// Starts the binary as `nohup` or a script's `&` would.
fn start_ignoring(place: &Place, args: &[&str]) -> Running {
    let mut command = undisturbed("sh");
    command.args(["-c", "trap '' HUP INT QUIT; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args).current_dir(place.path(""));
    for (key, value) in place.leasehold(args).get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    Running::start(&mut command)
}
