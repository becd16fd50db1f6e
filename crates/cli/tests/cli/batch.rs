//! The batch script of `examples/`, started as crontabs start it. Its test is here, because here is the binary.

use std::{env, fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path, process::Command};

use nix::{fcntl::OFlag, sys::stat::Mode, unistd::mkfifo};

use crate::common::{Outcome, Place, Running, outcome, wait_until};

#[test]
fn the_batch_runs_once_at_a_time_and_the_second_says_who_runs_it() {
    let place = Place::new();
    fs::create_dir(place.path("inbox")).unwrap();
    fs::write(place.path("inbox/1-monday"), "monday\n").unwrap();
    // The first is in the midst of its work for as long as nobody writes to this.
    mkfifo(&place.path("inbox/2-tuesday"), Mode::S_IRWXU).unwrap();
    let first = Running::start(&mut batch(&place));
    wait_until("the first file is taken", || !place.path("inbox/1-monday").exists());

    let second = outcome(&mut batch(&place));
    assert_eq!((second.code, second.stdout.as_str()), (75, ""), "{}", second.stderr);
    assert!(
        second.stderr.contains("nightly-batch") && second.stderr.contains("held by"),
        "{}",
        second.stderr
    );

    let mut tuesday = None;
    wait_until("the first reads", || {
        tuesday = open_if_read(&place.path("inbox/2-tuesday"));
        tuesday.is_some()
    });
    tuesday.take().unwrap().write_all(b"tuesday\n").unwrap();
    assert_took(&first.end(), 1, &["1-monday", "2-tuesday"]);
    assert_eq!(fs::read_to_string(place.path("ledger")).unwrap(), "monday\ntuesday\n");
    assert_took(&outcome(&mut batch(&place)), 2, &[]);
}

/// The script, with the command on its path.
fn batch(place: &Place) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/batch.sh");
    let binary = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap();
    let path = env::var("PATH").unwrap();
    let mut command = place.program(script, &["inbox", "ledger"]);
    place.with_store(&mut command).env("PATH", format!("{}:{path}", binary.display()));
    command
}

/// A pipe, to be written to, if somebody reads it.
fn open_if_read(pipe: &Path) -> Option<fs::File> {
    fs::OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(pipe).ok()
}

fn assert_took(ended: &Outcome, fence: u64, files: &[&str]) {
    let mut lines = vec![format!("batch: begins, with fence {fence}")];
    lines.extend(files.iter().map(|file| format!("batch: took {file}")));
    lines.push("batch: ends".to_owned());
    assert_eq!((ended.code, ended.stdout.trim_end()), (0, &*lines.join("\n")), "{}", ended.stderr);
}
