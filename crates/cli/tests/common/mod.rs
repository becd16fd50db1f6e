//! What the tests share: a folder with a store of its own, the real binary, and ways to wait for what it does.
//!
//! Tests order events by the lines that processes append to one file, never by the time they took. What is waited
//! for is waited for in short looks, under a limit that only a hang reaches.
#![allow(dead_code, reason = "every test file uses its own part of this")]

use std::{
    fs,
    io::Read,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

/// What only a hang reaches.
const LIMIT: Duration = Duration::from_secs(120);

/// A folder with a store of its own.
pub(crate) struct Place {
    dir: TempDir,
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The binary, on this place's store, knowing nothing of the machine it runs on.
    pub(crate) fn leasehold(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        self.with_store(&mut command);
        command
    }

    /// The binary, with nothing said about a store.
    pub(crate) fn bare(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_leasehold"), args)
    }

    /// Another program in the same surroundings.
    pub(crate) fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = undisturbed(program);
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("LOG", self.path("log"));
        command
    }

    /// Tells it of this place's store.
    pub(crate) fn with_store<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("LEASEHOLD_STORE", format!("sqlite:{}", self.path("locks.db").display()))
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        outcome(&mut self.leasehold(args))
    }

    /// Starts the binary and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.leasehold(args))
    }

    /// What the tests' scripts have written so far, a line each, in the order in which it happened.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a line that begins like this is there.
    pub(crate) fn wait_for_line(&self, begins: &str) {
        wait_until(begins, || self.log().iter().any(|line| line.starts_with(begins)));
    }

    /// The JSON that `show` has for this name.
    pub(crate) fn show(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.run(&["show", name, "-o", "json"]).stdout).unwrap()
    }

    /// Waits until somebody waits for this name in line.
    pub(crate) fn wait_for_waiter(&self, name: &str) {
        wait_until("a waiter", || self.show(name)["waiters"].as_array().is_some_and(|all| !all.is_empty()));
    }
}

/// A program that ignores no signal when it starts, though these tests may have been started so, as a background job of
/// a script is; what is ignored is inherited, and a shell cannot undo it.
pub(crate) fn undisturbed(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// A program that runs, ended when it goes out of scope.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.0.as_ref().unwrap().id().cast_signed())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Outcome {
        // It is still ours to end if it does not end by itself.
        let child = self.0.as_mut().unwrap();
        wait_until("the end of a process", || child.try_wait().unwrap().is_some());
        finished(&mut self.0.take().unwrap())
    }

    /// Kills it and takes note of its end.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.0.take().unwrap().wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a program to its end.
pub(crate) fn outcome(command: &mut Command) -> Outcome {
    Running::start(command).end()
}

fn finished(child: &mut Child) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().unwrap();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap());
    Outcome { code, stdout, stderr }
}

/// Waits until this is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "gave up waiting for {what}");
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no executor to block; it looks at processes")]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
