//! A program that runs: it is told lines, and says lines, within a time.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::FileExt as _,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use leasehold_workload::Said;
use tempfile::{NamedTempFile, TempPath};

use super::Contender;

/// For a program to start and connect; a cold JVM on a busy machine takes its time.
const START: Duration = Duration::from_secs(60);

/// One process of a contender. It is killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    tell: ChildStdin,
    heard: Receiver<String>,
    complaints: TempPath,
}

impl Running {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(
        contender: &Contender,
        url: &str,
        scenario: &str,
        tasks: usize,
        seconds: f64,
        number: Option<&Number>,
    ) -> Result<Self, String> {
        let words = [url, scenario, &tasks.to_string(), &seconds.to_string()].map(str::to_owned);
        let running = Self::begin(contender, &words, number)?;
        match running.hear(START)?.as_str() {
            "ready" => Ok(running),
            other => Err(format!("{} said {other:?} instead of ready", contender.name)),
        }
    }

    /// The release that a program says it is of.
    pub(super) fn version(contender: &Contender) -> Result<String, String> {
        let words = ["none", "version", "0", "0"].map(str::to_owned);
        let said = Self::begin(contender, &words, None)?.hear(START)?;
        serde_json::from_str(&said).map_err(|error| format!("no version: {error}"))
    }

    fn begin(contender: &Contender, words: &[String], number: Option<&Number>) -> Result<Self, String> {
        let file = NamedTempFile::new().map_err(|error| format!("no file for complaints: {error}"))?;
        let (file, complaints) = file.into_parts();
        let mut command = Command::new(&contender.program);
        command.args(&contender.before).args(words).args(&contender.after);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        if let Some(number) = number {
            command.env("BENCH_COUNTER", &number.path);
        }
        let mut child =
            command.spawn().map_err(|error| format!("cannot start {}: {error}", contender.name))?;
        let (Some(tell), Some(says)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process without pipes".to_owned());
        };
        let (pass, heard) = channel();
        thread::spawn(move || {
            for line in BufReader::new(says).lines().map_while(Result::ok) {
                if pass.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, tell, heard, complaints })
    }

    /// Says a line.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.tell, "{line}")
            .and_then(|()| self.tell.flush())
            .map_err(|error| self.complaint(&error.to_string()))
    }

    /// Waits for a line.
    pub(crate) fn hear(&self, patience: Duration) -> Result<String, String> {
        self.heard.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => self.complaint(&format!("nothing within {patience:?}")),
            RecvTimeoutError::Disconnected => self.complaint("it ended early"),
        })
    }

    /// Waits for what it says at the end.
    pub(crate) fn said(&self, patience: Duration) -> Result<Said, String> {
        let line = self.hear(patience)?;
        serde_json::from_str(&line).map_err(|error| format!("{error} in {line:?}"))
    }

    fn complaint(&self, what: &str) -> String {
        let complaints = fs::read_to_string(&self.complaints).unwrap_or_default();
        match complaints.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("{what}: {}", line.trim().chars().take(200).collect::<String>()),
            None => what.to_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill, and waiting returns at once.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The number that all count up together, in a file.
pub(crate) struct Number {
    path: TempPath,
    file: File,
}

impl Number {
    pub(crate) fn new() -> Result<Self, String> {
        let (file, path) = NamedTempFile::new().map_err(|error| error.to_string())?.into_parts();
        let number = Self { path, file };
        number.file.write_all_at(&[b'0'; 20], 0).map_err(|error| error.to_string())?;
        Ok(number)
    }

    pub(crate) fn read(&self) -> u64 {
        let mut digits = [0; 20];
        let read = self.file.read_exact_at(&mut digits, 0).is_ok();
        let digits = std::str::from_utf8(&digits).ok().filter(|_| read);
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}
