//! Command, exit code, stdout and stderr, as they are: for the usual uses and the wrong ones.
//!
//! In the transcripts `!` marks what was said on stderr, and the last line is the exit code.

use std::fmt::Write as _;

use crate::common::{Outcome, Place};

#[test]
fn usual_uses() {
    check(&[
        "
        $ run x -- echo hi
        hi
        [0]
        ",
        "
        $ run x -- sh -c 'echo out; echo err >&2; exit 7'
        out
        ! err
        [7]
        ",
        "
        $ run x -- sh -c 'kill -KILL $$'
        [137]
        ",
        "
        $ run -s x -- echo shared
        shared
        [0]
        ",
        "
        $ run --permits 2/3 pool -- sh -c 'echo $LEASEHOLD_NAME'
        pool
        [0]
        ",
        "
        $ run --fair -w 1s --ttl 10s --max-hold 1h --max-run 1h --label why x -- true
        [0]
        ",
        "
        $ ls
        NAME  KIND  HOLDER  HELD  LEASE  WAITING  LABEL  ID
        [0]
        ",
        "
        $ ls -o json
        []
        [0]
        ",
        "
        $ show x
        x is free
        [0]
        ",
        "
        $ --version
        leasehold 0.1.0
        [0]
        ",
    ]);
}

#[test]
fn wrong_uses_of_run() {
    check(&[
        "
        $ run x
        ! error: the following required arguments were not provided:
        !   <CMD>...
        !
        ! Usage: leasehold run <NAME> -- <CMD>...
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ run -- true
        ! error: the following required arguments were not provided:
        !   <NAME>
        !
        ! Usage: leasehold run <NAME> -- <CMD>...
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ run -w 5 x -- true
        ! error: invalid value '5' for '--wait <DUR>': not a length of time; write it like 30s, 250ms or '1h 30m'
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ run --permits 3/2 x -- true
        ! error: invalid value '3/2' for '--permits <K/N>': write it like 1/5: at least one permit, at most all of them
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ run --ttl 9s --grace 4s x -- true
        ! leasehold: error: --grace 4s is more than a third of the lease; there would be no time to renew
        [64]
        ",
        "
        $ run --grace 20s x -- true
        ! leasehold: error: --grace 20s is more than a third of the lease; there would be no time to renew
        [64]
        ",
        "
        $ run x -- ./no-such-command
        ! leasehold: error: ./no-such-command: command not found
        [127]
        ",
        "
        $ run x -- .
        ! leasehold: error: .: the command cannot be run: Permission denied (os error 13)
        [126]
        ",
    ]);
}

#[test]
fn uses_of_elect() {
    check(&[
        "
        $ elect x --value here -- sh -c 'echo $LEASEHOLD_NAME; exit 7'
        x
        [7]
        ",
        "
        $ elect x
        ! error: the following required arguments were not provided:
        !   <CMD>...
        !
        ! Usage: leasehold elect <NAME> -- <CMD>...
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ elect x --observe -- true
        ! error: the argument '--observe' cannot be used with '[CMD]...'
        !
        ! Usage: leasehold elect --observe <NAME> [-- <CMD>...]
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ elect x --again --wait 1s -- true
        ! error: the argument '--again' cannot be used with '--wait <DUR>'
        !
        ! Usage: leasehold elect --again <NAME> -- <CMD>...
        !
        ! For more information, try '--help'.
        [64]
        ",
        "
        $ elect x -- ./no-such-command
        ! leasehold: error: ./no-such-command: command not found
        [127]
        ",
    ]);
}

#[test]
fn wrong_uses_of_the_others() {
    check(&[
        "
        $ break x --id nonsense --reason r --yes
        ! leasehold: error: parse: \"nonsense\" is not an id; copy it from `leasehold ls`
        [64]
        ",
        "
        $ break x --id 00000000-0000-0000-0000-000000000000:1 --reason r
        ! leasehold: error: there is no terminal to ask on; add --yes to break the lock without asking
        [64]
        ",
        "
        $ break x --id 00000000-0000-0000-0000-000000000000:1 --reason r --yes
        ! leasehold: error: \"x\" has changed hands, nothing was broken; nobody holds it now
        [75]
        ",
        "
        $ release nonsense
        ! leasehold: error: parse: this is not a ticket; pass the line that `acquire` printed
        [64]
        ",
        "
        $ --store nonsense ls
        ! leasehold: error: connect: this is not a store URL; write it like sqlite:locks.db or memory:
        [78]
        ",
        "
        $ --store memory: --prefix p ls
        ! leasehold: error: connect: the prefix must end with its only colon, as in shop: or prod/shop:, or names would be in two prefixes
        [78]
        ",
        "
        $ --config missing.toml --prefix p: ls
        ! leasehold: error: connect: missing.toml: No such file or directory (os error 2)
        [78]
        ",
    ]);
}

#[test]
fn help_and_its_kin_are_no_errors() {
    let place = Place::new();
    for args in [
        &["--help"][..],
        &["-h"],
        &["help", "run"],
        &["run", "--help"],
        &["man"],
        &["man", "run"],
        &["completions", "bash"],
    ] {
        let Outcome { code, stdout, stderr } = place.run(args);
        assert_eq!((code, stderr.as_str()), (0, ""), "{args:?}");
        assert!(stdout.contains("leasehold"), "{args:?}");
    }
    assert_eq!(place.run(&[]).code, 64);
    assert_eq!(place.run(&["nonsense"]).code, 64);
}

#[test]
fn names_and_leases_that_cannot_be_are_usage_errors() {
    let place = Place::new();
    let long = "x".repeat(600);
    let cases: [&[&str]; 5] = [
        &["run", ""],
        &["run", "a\nb"],
        &["run", &long],
        &["run", "x", "--ttl", "0s"],
        &["run", "x", "--ttl", "9999y"],
    ];
    for args in cases {
        let Outcome { code, stdout, stderr } = place.run(&[args, &["--", "echo", "never"]].concat());
        assert_eq!((code, stdout.as_str()), (64, ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

fn check(snapshots: &[&str]) {
    let place = Place::new();
    let mut differences = String::new();
    for snapshot in snapshots {
        let expected: Vec<&str> =
            snapshot.lines().map(str::trim_start).filter(|line| !line.is_empty()).collect();
        let line = expected[0].strip_prefix("$ ").unwrap();
        let seen = transcript(&place, line);
        if seen != expected.join("\n") {
            let _ = writeln!(differences, "{seen}\n--- instead of\n{}\n", expected.join("\n"));
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

/// Runs the words of a line and writes down what came of it.
fn transcript(place: &Place, line: &str) -> String {
    let words = words(line);
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let Outcome { code, stdout, stderr } = place.run(&args);
    let mut lines = vec![format!("$ {line}")];
    lines.extend(stdout.lines().map(str::to_owned));
    lines.extend(stderr.lines().map(|line| format!("! {line}").trim_end().to_owned()));
    lines.push(format!("[{code}]"));
    lines.join("\n")
}

/// Quotes group words, as in a shell.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}
