//! Programs that run, and the stage on which they speak: waits for what they print, signals, and their end.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// What only a hang reaches.
const LIMIT: Duration = Duration::from_secs(120);

/// What programs print, all of them, line by line.
pub(crate) struct Stage {
    tell: Sender<String>,
    told: Receiver<String>,
    heard: Vec<String>,
}

/// A program that runs, killed when it goes out of scope.
pub(crate) struct Running {
    child: Child,
    /// Says nothing, and is hung up when all that the program printed is told.
    silence: Receiver<()>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let (tell, told) = mpsc::channel();
        Self { tell, told, heard: Vec::new() }
    }

    pub(crate) fn start(&self, command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let (out, tell) = (child.stdout.take().unwrap(), self.tell.clone());
        let (speaking, silence) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
            drop(speaking);
        });
        Running { child, silence }
    }

    /// Waits for the next line that has these words in it, and gives what comes after them.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let line = self.told.recv_timeout(LIMIT.saturating_sub(begun.elapsed()));
            let line = line.unwrap_or_else(|_| panic!("no {words:?} after {:#?}", self.heard));
            self.heard.push(line.clone());
            if let Some((_, after)) = line.split_once(words) {
                return after.to_owned();
            }
        }
    }

    /// All that was printed so far.
    pub(crate) fn heard(&mut self) -> &[String] {
        self.heard.extend(self.told.try_iter());
        &self.heard
    }
}

impl Running {
    /// As it calls itself.
    pub(crate) fn name(&self) -> String {
        format!("process {}", self.child.id())
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.wait_for_silence();
    }

    /// Presses Ctrl-C, and sees that it ends well.
    pub(crate) fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.wait_for_silence();
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{ended}");
    }

    fn wait_for_silence(&self) {
        assert_eq!(self.silence.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected), "it does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
