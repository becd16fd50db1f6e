//! `--status-file`: one line of JSON with the true outcome, since a child's exit code may look like one of ours.

use std::{
    fs, io,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use leasehold::backend::Loss;
use serde::Serialize;

use crate::{
    exit::{Exit, Failure},
    supervise::hold::Hold,
};

/// As many links as the kernel follows.
const LONGEST_CHAIN: usize = 40;

/// What is known of a run so far. Its fields are a promise to programs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    outcome: &'static str,
    exit_code: u8,
    names: Vec<String>,
    fences: Vec<u64>,
    ids: Vec<String>,
    child_code: Option<i32>,
    child_signal: Option<i32>,
    loss: Option<String>,
    holders: Option<String>,
    error: Option<String>,
    waited_ms: u64,
    held_ms: Option<u64>,
}

impl Report {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names, ..Self::default() }
    }

    pub(crate) fn waited(&mut self, waited: Duration) {
        self.waited_ms = waited.as_millis() as u64;
    }

    pub(crate) fn held(&mut self, hold: &Hold<'_>) {
        self.fences = hold.guards().map(leasehold::Guard::fence).collect();
        self.ids = hold.guards().map(|guard| guard.id().to_string()).collect();
    }

    pub(crate) fn held_for(&mut self, held: Duration) {
        self.held_ms = Some(held.as_millis() as u64);
    }

    pub(crate) fn busy(&mut self, holders: &str) {
        self.holders = Some(holders.to_owned());
    }

    pub(crate) fn child(&mut self, status: ExitStatus) {
        self.child_code = status.code();
        self.child_signal = status.signal();
    }

    pub(crate) fn loss(&mut self, loss: &Loss) {
        self.loss = Some(loss.to_string());
    }

    pub(crate) fn lost(&mut self, why: &str) {
        self.loss = Some(why.to_owned());
    }

    /// What a child's end is to the shell.
    pub(crate) fn exit_of(status: ExitStatus) -> Exit {
        match status.code() {
            Some(code) => Exit::Child(u8::try_from(code).unwrap_or(u8::MAX)),
            None => Exit::Signal(status.signal().unwrap_or_default()),
        }
    }

    /// Writes it. Of a regular file a reader sees the old or the new line, never half of one.
    pub(crate) fn write(&mut self, path: &Path, ended: &Result<Exit, Failure>) -> io::Result<()> {
        let exit = match ended {
            Ok(exit) => *exit,
            Err(failure) => {
                self.error = Some(failure.message.clone());
                failure.exit
            }
        };
        (self.outcome, self.exit_code) = (self.word(exit), exit.code());
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        match fs::metadata(path) {
            // A pipe or a device is there to be written to, not to be replaced.
            Ok(there) if !there.is_file() => fs::OpenOptions::new().write(true).open(path)?.write_all(&line),
            _ => replace(&target(path)?, &line),
        }
    }

    fn word(&self, exit: Exit) -> &'static str {
        match exit {
            Exit::Success | Exit::Child(_) => "exited",
            // Only `doctor` ends so, and it writes no status.
            Exit::Warned | Exit::Endangered => "examined",
            Exit::Signal(_) if self.child_signal.is_some() => "signaled",
            Exit::Signal(_) => "interrupted",
            Exit::Busy(_) => "busy",
            Exit::Lost => "lost",
            Exit::Broken => "broken",
            Exit::MaxRun => "max_run",
            Exit::NotExecutable => "not_executable",
            Exit::NotFound => "not_found",
            Exit::Usage => "usage",
            Exit::Unavailable => "unavailable",
            Exit::Denied => "denied",
            Exit::Config => "config",
            Exit::Internal => "internal",
        }
    }
}

/// What the path means when links are followed, be the last of them to a file that is not there yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = beside(path);
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.write_all(content)?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// A name next to it that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}
