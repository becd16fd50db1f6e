//! The terminal: lent to the child, and given back.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
};

use crate::common::{Outcome, Place, undisturbed, wait_until};

/// Runs a shell script as the leader of a session on a terminal of its own; `input` is typed once the script has
/// written `ready` to the log.
fn on_a_terminal(place: &Place, script: &str, input: &[u8]) -> Outcome {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let end = || Stdio::from(terminal.slave.try_clone().unwrap());
    let mut command = undisturbed("setsid");
    command.args(["--ctty", "--wait", "sh", "-c", script]).current_dir(place.path(""));
    for (key, value) in place.leasehold(&[]).get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    command.env("EXE", env!("CARGO_BIN_EXE_leasehold")).stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    let mut keyboard = File::from(terminal.master as OwnedFd);
    if !input.is_empty() {
        place.wait_for_line("ready");
        keyboard.write_all(input).unwrap();
    }
    wait_until("the end of the session", || child.try_wait().unwrap().is_some());
    let code = child.wait().unwrap().code().unwrap();
    Outcome { code, stdout: String::new(), stderr: String::new() }
}

/// Prints the process's own group and the group that has the terminal.
const GROUPS: &str = "read -r _ _ _ _ group _ _ foreground _ < /proc/$$/stat; ";

#[test]
fn the_child_has_the_terminal_while_it_runs_and_no_longer() {
    let place = Place::new();
    let inner = format!("{GROUPS} [ $group = $foreground ] && echo lent >> $LOG");
    let outer =
        format!("$EXE run x -- sh -c '{inner}'; {GROUPS} [ $group = $foreground ] && echo back >> $LOG");
    on_a_terminal(&place, &outer, b"");
    assert_eq!(place.log(), ["lent", "back"]);
}

#[test]
fn the_terminal_comes_back_if_the_command_cannot_be_run() {
    let place = Place::new();
    let outer = format!("$EXE run x -- ./nowhere; {GROUPS} [ $group = $foreground ] && echo back >> $LOG");
    on_a_terminal(&place, &outer, b"");
    assert_eq!(place.log(), ["back"]);
}

#[test]
fn control_c_reaches_the_child_once() {
    let place = Place::new();
    let inner = "trap \"echo INT >> $LOG; exit 9\" INT; echo ready >> $LOG; while :; do sleep 0.01; done";
    let ended = on_a_terminal(&place, &format!("exec $EXE run x -- sh -c '{inner}'"), b"\x03");
    assert_eq!(ended.code, 9);
    assert_eq!(place.log(), ["ready", "INT"]);
}

#[test]
fn control_z_stops_the_whole_job_and_fg_brings_it_back() {
    let place = Place::new();
    // The child runs no others: a shell that is stopped while it forks cannot tell anybody.
    let inner = "echo ready >> $LOG; exec cat gate";
    let outer = format!(
        "mkfifo gate; set -m; $EXE run --ttl 60s x -- sh -c '{inner}'; \
         echo stopped >> $LOG; (echo > gate &); fg; echo ended $? >> $LOG"
    );
    on_a_terminal(&place, &outer, b"\x1a");
    assert_eq!(place.log(), ["ready", "stopped", "ended 0"]);
}

#[test]
fn in_a_pipeline_the_terminal_stays_with_the_others_until_the_child_asks() {
    let place = Place::new();
    let inner = format!(
        "{GROUPS} [ $group != $foreground ] && echo apart >> $LOG; echo ready >> $LOG; read line < /dev/tty; echo $line >> $LOG"
    );
    let outer = format!("set -m; $EXE run x -- sh -c '{inner}' | cat");
    on_a_terminal(&place, &outer, b"typed\n");
    assert_eq!(place.log(), ["apart", "ready", "typed"]);
}

#[test]
fn break_shows_who_holds_the_lock_and_asks() {
    let place = Place::new();
    assert_eq!(place.run(&["acquire", "x"]).code, 0);
    let id = place.show("x")["holders"][0]["id"].as_str().unwrap().to_owned();
    for (answer, state) in [("no", "held"), ("", "held"), ("yes", "free")] {
        let script = format!("echo ready >> $LOG; $EXE break x --id {id} --reason r");
        let asked = on_a_terminal(&place, &script, format!("{answer}\n").as_bytes());
        assert_eq!((asked.code, place.show("x")["state"].as_str()), (0, Some(state)), "{answer:?}");
    }
}

/// What the list looks like on a terminal of so many columns.
fn listed(place: &Place, columns: u16) -> String {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = nix::pty::openpty(Some(&size), None).unwrap();
    let mut command = place.leasehold(&["ls"]);
    let mut child = command.stdout(terminal.slave).stderr(Stdio::piped()).spawn().unwrap();
    // Its own end of the terminal: what is read ends with the child.
    drop(command);
    let (mut screen, mut shown) = (File::from(terminal.master), Vec::new());
    // The last one to close a terminal leaves an error behind, not an end.
    let _ = screen.read_to_end(&mut shown);
    let (mut said, status) = (String::new(), child.wait().unwrap());
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success() && said.is_empty(), "{columns} columns: {status} {said}");
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_list_is_legible_on_the_narrowest_terminal() {
    let place = Place::new();
    for name in ["order:4711-of-a-customer-with-a-long-name", "锁锁锁锁锁锁锁锁锁锁锁锁锁锁锁锁"]
    {
        assert_eq!(place.run(&["acquire", name, "--ttl", "1h"]).code, 0);
    }
    for columns in [1, 2, 7, 8, 12, 19, 20, 29, 30, 79] {
        let shown = listed(&place, columns);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.len() == 3 && lines[0].starts_with("NAME"), "{columns} columns: {shown}");
        for begins in ["order:", "锁锁"] {
            assert!(lines.iter().any(|line| line.starts_with(begins)), "{columns} columns: {shown}");
        }
        if columns >= 30 {
            assert!(
                lines.iter().all(|line| line.chars().count() <= columns.into()),
                "{columns} columns: {shown}"
            );
        }
    }
}
