//! The workers of a run: processes that are started, killed, stopped and let go on by their process ids.
//!
//! Workers die with the thread that started them (the kernel sees to it), so a fleet is used from the main thread.

use std::{
    fs::File,
    io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{clock::rest, worker::Arguments};

/// How long a worker may take to end after it was asked to: its longest wait in line, and some.
const PATIENCE: Duration = Duration::from_secs(30);

/// How it is said that a worker ended though nobody asked it to.
pub const DESERTED: &str = "ended by itself";

/// Workers, each at its place.
#[derive(Debug)]
pub struct Fleet {
    program: PathBuf,
    template: Arguments,
    /// Where each place finds the store.
    urls: Vec<String>,
    crew: Vec<Member>,
    started: u32,
}

#[derive(Debug)]
struct Member {
    child: Child,
    process: u32,
}

/// How a worker ended that was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its number.
    pub process: u32,
    /// What it said of itself: a word and a count. `None` if it did not end in order.
    pub words: Option<Vec<(String, u64)>>,
}

impl Fleet {
    /// Starts workers from this template, one for each of these URLs of the store.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn start(program: PathBuf, template: Arguments, urls: Vec<String>) -> io::Result<Self> {
        let places = urls.len();
        let mut fleet = Self { program, template, urls, crew: Vec::new(), started: 0 };
        for place in 0..places {
            let member = fleet.launch(place)?;
            fleet.crew.push(member);
        }
        Ok(fleet)
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.crew.len()
    }

    /// Numbers of all workers there ever were.
    pub fn processes(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.started
    }

    /// The arguments of a worker.
    pub fn arguments(&self, process: u32) -> Arguments {
        let seed = self.template.seed.wrapping_add(u64::from(process));
        Arguments { process, seed, ..self.template.clone() }
    }

    /// Kills the worker at this place (SIGKILL), waits until it is gone, and returns its number.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn kill(&mut self, place: usize) -> io::Result<u32> {
        let member = &mut self.crew[place];
        member.child.kill()?;
        member.child.wait()?;
        Ok(member.process)
    }

    /// Puts another worker at the place of a killed one.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn replace(&mut self, place: usize) -> io::Result<()> {
        self.crew[place] = self.launch(place)?;
        Ok(())
    }

    /// Stops the worker at this place where it stands (SIGSTOP), and returns its number.
    ///
    /// # Errors
    /// If it is gone.
    pub fn pause(&self, place: usize) -> io::Result<u32> {
        self.crew[place].signal(Signal::STOP)?;
        Ok(self.crew[place].process)
    }

    /// Lets the worker at this place go on (SIGCONT).
    ///
    /// # Errors
    /// If it is gone.
    pub fn resume(&self, place: usize) -> io::Result<()> {
        self.crew[place].signal(Signal::CONT)
    }

    /// The first worker that ended by itself although nobody asked it to, with the end of its log.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn deserter(&mut self) -> io::Result<Option<String>> {
        for member in &mut self.crew {
            if let Some(status) = member.child.try_wait()? {
                let log = self.template.folder.join(format!("worker-{}.log", member.process));
                let log = std::fs::read_to_string(log).unwrap_or_default();
                let last = log.lines().next_back().unwrap_or_default();
                return Ok(Some(format!("worker {} {DESERTED} ({status}): {last}", member.process)));
            }
        }
        Ok(None)
    }

    /// Asks all workers to end (SIGTERM), and says how they did. Who does not end in time is killed.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn stop(&mut self) -> io::Result<Vec<Ending>> {
        for member in &self.crew {
            // One that is gone already has no last words, and that is what is reported.
            drop(member.signal(Signal::TERM));
        }
        let end = Instant::now() + PATIENCE;
        let mut endings = Vec::new();
        for member in &mut self.crew {
            while member.child.try_wait()?.is_none() && Instant::now() < end {
                rest(Duration::from_millis(10));
            }
            member.child.kill()?;
            member.child.wait()?;
            endings.push(member.process);
        }
        Ok(endings.into_iter().map(|process| self.ending(process)).collect())
    }

    /// Those who panicked somewhere, with what they said: a task's panic does not end its process.
    pub fn panics(&self) -> impl Iterator<Item = String> {
        self.processes().filter_map(|process| {
            let log =
                std::fs::read_to_string(self.template.folder.join(format!("worker-{process}.log"))).ok()?;
            let line = log.lines().find(|line| line.contains("panicked at"))?;
            Some(format!("worker {process}: {line}"))
        })
    }

    fn ending(&self, process: u32) -> Ending {
        let text = std::fs::read_to_string(self.arguments(process).ending()).ok();
        let word = |line: &str| {
            let (word, count) = line.split_once('\t')?;
            Some((word.to_owned(), count.parse().ok()?))
        };
        Ending { process, words: text.map(|text| text.lines().filter_map(word).collect()) }
    }

    fn launch(&mut self, place: usize) -> io::Result<Member> {
        self.started += 1;
        let process = self.started;
        let log = File::create(self.template.folder.join(format!("worker-{process}.log")))?;
        let mut command = Command::new(&self.program);
        let arguments = Arguments { url: self.urls[place].clone(), ..self.arguments(process) };
        command.args(arguments.words());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Member { child: command.spawn()?, process })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in &mut self.crew {
            drop(member.child.kill());
            drop(member.child.wait());
        }
    }
}

impl Member {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        // Only ever the process itself: a child's id is positive and names no group.
        let pid = i32::try_from(self.child.id()).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the worker has no process id"))?;
        Ok(kill_process(pid, signal)?)
    }
}
