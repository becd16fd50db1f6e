//! `leasehold run x -- true` against `flock x true`: what a lock costs a script.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{alternate::alternate, report::Report};

pub(crate) fn run(report: &mut Report) {
    let what = "leasehold run x -- true";
    let Some(leasehold) = binary() else {
        return report.skipped(what, "build it first: cargo build --release -p leasehold-cli");
    };
    let folder = tempfile::tempdir().expect("a folder for the locks");
    let (database, file) = (folder.path().join("locks.db"), folder.path().join("file"));
    if let Err(error) = Command::new("flock").arg(&file).arg("true").status() {
        return report.skipped(what, format!("flock cannot be started: {error}"));
    }
    let store = format!("sqlite:{}", database.display());
    let mut ours = |times| repeat(times, &leasehold, &["--store", &store, "run", "x", "--", "true"]);
    let path = file.to_string_lossy().into_owned();
    let mut theirs = |times| repeat(times, Path::new("flock"), &[&path, "true"]);
    let comparison = alternate(15, 10, &mut ours, &mut theirs);
    report.excess(what, "flock x true", &comparison, Duration::from_millis(10));
}

/// The command, built beside this program.
fn binary() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name("leasehold");
    path.is_file().then_some(path)
}

fn repeat(times: u32, program: &Path, arguments: &[&str]) {
    for _ in 0..times {
        let status = Command::new(program).args(arguments).stdin(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "{} {arguments:?}", program.display());
    }
}
