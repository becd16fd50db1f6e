//! The page: every target with its figure, the figures behind it, plots, and how to have them again.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use crate::{
    args::Args,
    findings::{Findings, Table},
    harness::Stage,
    reasons, svg,
};

/// Writes the page, and its plots to a folder of the page's name beside it.
pub(crate) fn write(file: &Path, stage: &Stage, findings: &Findings) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
    let plots = file.with_extension("");
    if plots.is_dir() {
        fs::remove_dir_all(&plots).map_err(failed)?;
    }
    fs::create_dir_all(&plots).map_err(failed)?;
    for (name, chart) in findings.charts.iter().filter(|(_, chart)| !chart.is_empty()) {
        fs::write(plots.join(format!("{name}.svg")), svg::draw(chart)).map_err(failed)?;
    }
    let folder = plots.file_name().unwrap_or_default().to_string_lossy().into_owned();
    fs::write(file, text(stage, findings, &folder)).map_err(failed)
}

/// The targets as lines for a terminal.
pub(crate) fn summary(findings: &Findings) -> String {
    let mut out = String::new();
    for [what, wanted, measured, verdict] in findings.verdicts() {
        let verdict = verdict.replace('*', "");
        line(&mut out, &format!("{verdict:>12}  {measured} (wanted {wanted})  {what}"));
    }
    out
}

fn text(stage: &Stage, findings: &Findings, folder: &str) -> String {
    let mut out = String::from("# Benchmarks\n\n");
    line(
        &mut out,
        "Written by `cargo xtask bench`; do not edit. Every target is a ratio between things measured",
    );
    line(
        &mut out,
        "alternately in one run (A B C A B C…): medians, with the least and the greatest in brackets.",
    );
    line(&mut out, "Absolute figures are those of one machine and say little on another.\n");
    if stage.args.quick {
        line(
            &mut out,
            "**A quick run**: one round, and fewer tasks, locks and seconds than the rows say. It shows that",
        );
        line(&mut out, "everything runs and is exact; its figures mean little.\n");
    }
    targets(&mut out, findings);
    missed(&mut out, findings);
    if !findings.others_wrong.is_empty() || !findings.wrong.is_empty() {
        line(&mut out, "## What came out wrong\n");
        for wrong in findings.wrong.iter().chain(&findings.others_wrong) {
            line(&mut out, &format!("- {wrong}"));
        }
        line(&mut out, "");
    }
    for (name, chart) in findings.charts.iter().filter(|(_, chart)| !chart.is_empty()) {
        line(&mut out, &format!("![{}]({folder}/{name}.svg)\n", chart.title));
    }
    for table in &findings.tables {
        self::table(&mut out, table);
    }
    for (title, text) in &findings.texts {
        line(&mut out, &format!("## {title}\n\n```text\n{text}\n```\n"));
    }
    compared(&mut out, stage);
    conditions(&mut out, stage);
    out
}

fn targets(out: &mut String, findings: &Findings) {
    let mut table = Table::new("Targets", "", &["what", "target", "measured", ""]);
    table.rows = findings.verdicts().into_iter().map(Vec::from).collect();
    self::table(out, &table);
}

fn missed(out: &mut String, findings: &Findings) {
    let lines = reasons::lines(&findings.missed());
    if !lines.is_empty() {
        line(out, &format!("## Why some are missed\n\n{}\n", lines.join("\n")));
    }
}

fn table(out: &mut String, table: &Table) {
    line(out, &format!("## {}\n", table.title));
    if !table.note.is_empty() {
        line(out, &format!("{}\n", table.note));
    }
    line(out, &format!("| {} |", table.head.join(" | ")));
    line(out, &format!("|{}", "---|".repeat(table.head.len())));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        line(out, &format!("| {} |", cells.join(" | ")));
    }
    line(out, "");
}

fn compared(out: &mut String, stage: &Stage) {
    let mut table = Table::new("Who is compared", "", &["library", "release", "while a lock is held"]);
    for peer in &stage.peers {
        let waits = match peer.waits {
            crate::harness::Waits::Wakes => "is woken",
            crate::harness::Waits::Polls => "polls",
        };
        table.row([peer.name.clone(), peer.about.clone(), waits.to_owned()]);
    }
    for (name, why) in &stage.missing {
        table.row([name.clone(), format!("not here: {why}"), String::new()]);
    }
    self::table(out, &table);
}

fn conditions(out: &mut String, stage: &Stage) {
    let args: &Args = &stage.args;
    line(out, "## Conditions\n");
    let size = if args.quick { "a quick run" } else { "a full run" };
    line(out, &format!("- Commit {}; {size}, up to {} rounds.", args.commit, args.rounds()));
    line(out, &format!("- Redis {}, on loopback, keeping nothing on disk.", stage.server.version()));
    for (program, words) in [
        ("rustc", &["--version"][..]),
        ("java", &["-version"]),
        ("node", &["--version"]),
        ("python3", &["--version"]),
    ] {
        line(out, &format!("- {program}: {}", first_line(program, words)));
    }
    line(out, &format!("- {}", machine()));
    line(
        out,
        "- Again: `cargo xtask bench`; one section: `cargo xtask bench --only NAME`; a smoke test: `--quick`.",
    );
}

fn first_line(program: &str, words: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(words).output() else { return "not installed".to_owned() };
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).lines().next().unwrap_or("says nothing").trim().to_owned()
}

fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processors} processors ({model}), Linux {}.", kernel.trim())
}

fn line(out: &mut String, text: &str) {
    // Writing to a text cannot fail.
    _ = writeln!(out, "{text}");
}
