//! One Java process: started, paused, resumed, crashed, and killed on drop.
//!
//! It ends by itself when its input ends, so it does not outlive a test process that was killed.

use std::{
    fs::File,
    io::{self, Read, Seek},
    process::{Child, Command, Stdio},
    sync::mpsc::RecvTimeoutError,
    time::Duration,
};

use leasehold_testkit::servers::StartError;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    call::Call,
    config::{Config, Version},
    maven,
    pipe::{Answer, Pipe},
    thread::Thread,
};

/// How long it may take to start and to connect.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running Redisson. Dropping it kills the process; what it held stays held until it expires.
#[derive(Debug)]
pub struct Java {
    child: Child,
    pipe: Pipe,
    client: String,
    redisson: String,
}

impl Java {
    /// Builds the program if need be, starts it, and waits until it is connected.
    ///
    /// # Errors
    /// [`StartError`]; not installed if Java, Maven or Redisson itself cannot be had.
    pub fn start(version: Version, config: &Config) -> Result<Self, StartError> {
        maven::installed("java", "default-jdk-headless")?;
        let jar = maven::jar(version)?;
        let mut log = tempfile::tempfile()?;
        let mut command = Command::new("java");
        command.args(config.machine()).arg("-jar").arg(jar).args(config.arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.try_clone()?);
        let mut child = command.spawn()?;
        match greet(&mut child, &mut log) {
            Ok((pipe, hello)) => Ok(Self { child, pipe, client: hello.client, redisson: hello.redisson }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// The thread of that name in it. It is made when it is first spoken to. Names hold no blanks.
    pub fn thread<'a>(&'a self, name: &'a str) -> Thread<'a> {
        Thread::new(self, name)
    }

    /// Redisson's id of this client: the first part of every holder's name.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Which Redisson it is.
    pub fn redisson(&self) -> &str {
        &self.redisson
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the client as a well-behaved program does before it ends. Redisson releases nothing then either.
    pub fn shutdown(&self) -> Call<()> {
        self.call("- shutdown".to_owned())
    }

    /// Stops it where it stands (SIGSTOP): nothing is renewed, connections stay open.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// If the process is gone.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills it (SIGKILL) and waits until it is gone. Calls under way end with an error.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn crash(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    pub(crate) fn call<T: serde::de::DeserializeOwned>(&self, command: String) -> Call<T> {
        let answers = self.pipe.send(&command);
        Call::new(command, answers)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        // Only ever the process itself: a child's id is positive and names no group.
        let pid = i32::try_from(self.child.id()).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(kill_process(pid, signal)?)
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Takes the ends of the child and waits for its first line.
fn greet(child: &mut Child, log: &mut File) -> Result<(Pipe, Answer), StartError> {
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(StartError::System(io::Error::other("the child has no pipes")));
    };
    let (pipe, first) = Pipe::new(input, output)?;
    let program = || "java".to_owned();
    match first.recv_timeout(PATIENCE) {
        Ok(Answer { error: Some(class), message, .. }) => {
            Err(StartError::NotReady { program: program(), log: format!("{class}: {message}") })
        }
        Ok(hello) => Ok((pipe, hello)),
        Err(RecvTimeoutError::Timeout) => Err(StartError::NotReady { program: program(), log: said(log) }),
        Err(RecvTimeoutError::Disconnected) => {
            Err(StartError::Exited { program: program(), status: child.wait()?, log: said(log) })
        }
    }
}

/// What it wrote to its log.
fn said(log: &mut File) -> String {
    let mut text = String::new();
    drop(log.rewind().and_then(|()| log.read_to_string(&mut text)));
    text
}

fn end(child: &mut Child) {
    // It may be gone already; then there is nothing to kill, and waiting returns at once.
    drop(child.kill());
    drop(child.wait());
}
