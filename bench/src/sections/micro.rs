//! What single operations cost: `benches/micro.rs`, and what it prints.

use std::process::{Command, Stdio};

use crate::{findings::Findings, harness::Stage};

pub(super) fn run(stage: &mut Stage, findings: &mut Findings) -> Result<(), String> {
    stage.progress.section("single operations", 1);
    stage.progress.step("benches/micro.rs");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // As this program was built: a build of another kind would take minutes of a quick run.
    let profile = if cfg!(debug_assertions) { "dev" } else { "bench" };
    let seconds = stage.args.pick("0.02", "1");
    let output = Command::new(cargo)
        .args(["bench", "--quiet", "--profile", profile, "--package", "leasehold-bench", "--bench", "micro"])
        .args(["--", "--color", "never", "--max-time", seconds])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start cargo bench: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || said.trim().is_empty() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing was said");
        return Err(format!("cargo bench ended with {}: {last}", output.status));
    }
    findings.texts.push(("Single operations, on one thread and without a server".to_owned(), tidy(&said)));
    Ok(())
}

/// Without blanks at the ends of lines, which nobody sees.
fn tidy(said: &str) -> String {
    said.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
