//! The only place that prints: data to stdout, talk to stderr.
//!
//! Colour is dropped where it is not wanted (`NO_COLOR`, a pipe, a dumb terminal); nothing is said by colour alone.
//! Everything that came from others is made harmless on its way to a terminal. A reader that went away is not an
//! error, unless it was to get what cannot be had again.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use leasehold::backend::Severity;

use crate::{
    exit::{Exit, Failure},
    text,
};

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Volume {
    /// Nothing but what went wrong.
    Quiet,
    /// What a person wants to know.
    Normal,
    /// How long things took, too.
    Verbose,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HEADER: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const NOTE: Style = AnsiColor::Cyan.on_default();

/// What ended the program. Said at any volume.
pub(crate) fn error(message: &str) {
    say(ERROR, "error", message);
}

/// What went wrong without ending anything. Said at any volume.
pub(crate) fn warn(message: &str) {
    say(WARNING, "warning", message);
}

/// Something worth knowing, for those who want to know this much.
pub(crate) fn note(volume: Volume, needed: Volume, message: &str) {
    if volume >= needed {
        let line = format!("leasehold: {}\n", text::clean(message));
        ignore(io::stderr().write_all(line.as_bytes()));
    }
}

fn say(style: Style, word: &str, message: &str) {
    let line = format!("leasehold: {style}{word}{style:#}: {}\n", text::clean(message));
    ignore(anstream::stderr().write_all(line.as_bytes()));
}

/// Data, for stdout. The text is ours or has been made harmless.
pub(crate) fn data(out: &str) -> Result<(), Failure> {
    finish(io::stdout().write_all(out.as_bytes()))
}

/// Data as JSON: what others wrote in it is made harmless here.
pub(crate) fn json(out: &str) -> Result<(), Failure> {
    data(&text::clean_json(out))
}

/// Data that must arrive: a reader that went away is an error too.
pub(crate) fn delivered(out: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout();
    let written = stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::internal("cannot write to stdout", error))
}

/// A question, to be answered on the same line.
pub(crate) fn ask(question: &str) {
    ignore(io::stderr().write_all(question.as_bytes()));
}

/// How something is getting on: over the last such line, on a terminal. An empty one only clears it.
pub(crate) fn over(line: &str) {
    ignore(io::stderr().write_all(format!("\r\x1b[2K{line}").as_bytes()));
}

/// What the command line's own reader has to say: help that was asked for, or what is wrong with it.
pub(crate) fn help(error: &clap::Error) -> Exit {
    ignore(error.print());
    if error.use_stderr() { Exit::Usage } else { Exit::Success }
}

/// Data with a heading that stands out on a terminal.
pub(crate) fn headed(heading: &str, out: &str) -> Result<(), Failure> {
    let text = format!("{HEADER}{heading}{HEADER:#}\n{out}");
    finish(anstream::stdout().write_all(text.as_bytes()))
}

/// The colour of a finding's severity; the word itself is said as well.
pub(crate) fn severity(severity: Severity) -> Style {
    match severity {
        Severity::Good => GOOD,
        Severity::Note => NOTE,
        Severity::Warning => WARNING,
        _ => ERROR,
    }
}

/// Data with styles in it, which are dropped where they are not wanted. The text is ours or has been made harmless.
pub(crate) fn coloured(out: &str) -> Result<(), Failure> {
    finish(anstream::stdout().write_all(out.as_bytes()))
}

fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::new(Exit::Success, "")),
        Err(error) => Err(Failure::internal("cannot write to stdout", error)),
        Ok(()) => Ok(()),
    }
}

/// There is nobody left to tell when stderr cannot be written.
fn ignore(written: io::Result<()>) {
    drop(written);
}
