//! The log: what the libraries say while they work, on stderr.
//!
//! Warnings, unless more is asked for: `-v` adds what is worth knowing, and `RUST_LOG` decides for itself, as other programs
//! have it (`RUST_LOG=leasehold=debug`). What others wrote is made harmless, each line is one line, and there are no colours.
//!
//! Nobody waits for the log. Whoever keeps a lock must not stand still because nobody reads its stderr: a line for which there
//! is no room is dropped.

use std::{
    io::{self, Write},
    os::fd::AsFd,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::{
    print::{self, Volume},
    text,
};

/// So much fits where a poll says that there is room, whatever is at the other end.
const LONGEST: usize = 4096;

/// Begins to log, for as long as the program runs.
pub(crate) fn begin(volume: Volume) {
    let level = if volume == Volume::Verbose { LevelFilter::INFO } else { LevelFilter::WARN };
    let filter = EnvFilter::builder().with_default_directive(level.into());
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = filter.parse(wanted).unwrap_or_else(|error| {
        print::warn(&format!("RUST_LOG makes no sense, so warnings are logged and nothing else: {error}"));
        EnvFilter::default().add_directive(LevelFilter::WARN.into())
    });
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Line);
    // To complain about a line that cannot be written would be to write another, and to panic if that fails.
    let begun = log.with_ansi(false).log_internal_errors(false).try_init();
    debug_assert!(begun.is_ok(), "the log begins once");
}

/// Where lines go, each in one piece.
struct Line;

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let safe = harmless(line);
        if has_room() {
            drop(io::stderr().write_all(safe.as_bytes()));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One line that a terminal only draws, as long as it may be.
fn harmless(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut safe = text::clean(text.trim_end()).into_owned();
    let end = (0..LONGEST).rev().find(|&at| safe.is_char_boundary(at));
    safe.truncate(end.unwrap_or_default());
    safe.push('\n');
    safe
}

fn has_room() -> bool {
    let stderr = io::stderr();
    let mut asked = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let ready = poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    ready && asked[0].revents().is_some_and(|seen| seen.contains(PollFlags::POLLOUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_that_a_terminal_only_draws() {
        let line = "WARN name=\u{1b}[2Ja\nb \u{9b}31m \u{202e}x\n";
        assert_eq!(harmless(line.as_bytes()), "WARN name=\\u{1b}[2Ja\\u{a}b \\u{9b}31m \\u{202e}x\n");
    }

    #[test]
    fn a_long_line_is_cut_between_two_characters() {
        let line = "锁".repeat(LONGEST);
        let safe = harmless(line.as_bytes());
        assert!(safe.len() <= LONGEST && safe.ends_with("锁\n"), "{}", safe.len());
    }
}
