//! `leasehold run x -- true` against `flock x true`: what a lock costs a script.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    alternate::alternate,
    findings::{Findings, Table},
    harness::Stage,
};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    stage.progress.section("the command", 1);
    stage.progress.step("leasehold run");
    let leasehold = binary().ok_or("the command is not built; `cargo xtask bench` builds it")?;
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for the locks: {error}"))?;
    let (database, file) = (folder.path().join("locks.db"), folder.path().join("file"));
    if let Err(error) = Command::new("flock").arg(&file).arg("true").status() {
        findings.target("command.excess", Err(format!("flock cannot be started: {error}")));
        return Ok(());
    }
    let (store, path) = (format!("sqlite:{}", database.display()), file.to_string_lossy().into_owned());
    let mut failures = 0;
    let mut other_failures = 0;
    let mut ours = |times| {
        failures += repeat(times, &leasehold, &["--store", &store, "run", "x", "--", "true"]);
    };
    let mut theirs = |times| other_failures += repeat(times, Path::new("flock"), &[&path, "true"]);
    let (rounds, times) = stage.args.pick((3, 3), (15, 10));
    let comparison = alternate(rounds, times, &mut ours, &mut theirs)?;
    if failures + other_failures > 0 {
        return Err(format!("leasehold failed {failures} times, flock {other_failures} times"));
    }
    findings.target("command.excess", Ok((comparison.ours.median - comparison.theirs.median) / 1e6));
    let head = ["", "`leasehold run x -- true`", "`flock x true`", "×"];
    let mut table = Table::new("The command", "On SQLite.", &head);
    table.row(comparison.cells("ms", 1e6));
    findings.tables.push(table);
    Ok(())
}

/// The command, built beside this program.
fn binary() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name("leasehold");
    path.is_file().then_some(path)
}

/// How often it failed.
fn repeat(times: u32, program: &Path, arguments: &[&str]) -> u32 {
    let run = || Command::new(program).args(arguments).stdin(Stdio::null()).status();
    (0..times).map(|_| u32::from(!run().is_ok_and(|status| status.success()))).sum()
}
