//! Runs programs and keeps what they say.

mod contender;
mod peers;
mod progress;
mod running;
mod samples;
mod server;
mod tap;

pub(crate) use self::{
    contender::{Contender, Waits},
    progress::Progress,
    running::{Number, Running},
    samples::{Samples, Spread, figure},
    server::{Seen, Server},
    tap::{Counted, Tap},
};

use std::time::Duration;

use leasehold_workload::Said;

use crate::args::Args;

/// How long a quick run waits for another library.
const HURRY: Duration = Duration::from_secs(15);

/// All that a section needs.
pub(crate) struct Stage {
    pub(crate) args: Args,
    pub(crate) server: Server,
    pub(crate) peers: Vec<Contender>,
    /// Those that are not there, and why.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) progress: Progress,
}

impl Stage {
    pub(crate) fn set(args: &Args, sections: usize) -> Result<Self, String> {
        let server = Server::start()?;
        let (peers, missing) = peers::find(args)?;
        for (name, why) in &missing {
            crate::say(&format!("without {name}: {why}"));
        }
        Ok(Self { args: args.clone(), server, peers, missing, progress: Progress::new(sections) })
    }

    /// The libraries for this store that are there.
    pub(crate) fn peers_of(&self, store: &str) -> Vec<Contender> {
        self.peers.iter().filter(|peer| peer.store == store).cloned().collect()
    }

    /// Why a library is not there.
    pub(crate) fn why_missing(&self, name: &str) -> String {
        let missing = self.missing.iter().find(|(missing, _)| missing == name);
        missing.map_or_else(|| format!("{name} did not run"), |(_, why)| format!("without {name}: {why}"))
    }
}

/// One run of one contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a> {
    pub(crate) contender: &'a Contender,
    pub(crate) scenario: &'a str,
    /// Of all its processes together.
    pub(crate) tasks: usize,
    pub(crate) seconds: f64,
    pub(crate) processes: usize,
    /// How long it may take beyond the seconds it is given.
    pub(crate) patience: Duration,
    /// On another store than the server of this stage.
    pub(crate) url: Option<&'a str>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) said: Vec<Said>,
    pub(crate) seen: Seen,
    /// What the number came to, where there is one.
    pub(crate) counted: u64,
}

impl<'a> Task<'a> {
    pub(crate) fn new(contender: &'a Contender, scenario: &'a str, tasks: usize, seconds: f64) -> Self {
        let patience = Duration::from_secs(60);
        Self { contender, scenario, tasks, seconds, processes: 1, patience, url: None }
    }
}

impl Ran {
    /// The slowest process counts.
    pub(crate) fn seconds(&self) -> f64 {
        self.said.iter().map(|said| said.seconds).fold(0.0, f64::max)
    }

    /// What the first process said.
    pub(crate) fn first(&self) -> Said {
        self.said.first().cloned().unwrap_or_default()
    }
}

impl Stage {
    /// Runs it, on a server with nothing on it.
    pub(crate) fn run(&mut self, task: Task<'_>) -> Result<Ran, String> {
        self.progress.step(&format!("{} × {}", task.contender.name, task.tasks));
        self.perform(task, false).map(|(ran, _)| ran)
    }

    /// Runs it and counts the commands that it sends meanwhile, which makes it slower.
    pub(crate) fn count(&mut self, task: Task<'_>) -> Result<(Ran, Counted), String> {
        self.progress.step(&format!("{} × {}, counting commands", task.contender.name, task.tasks));
        self.perform(task, true)
    }

    fn perform(&self, task: Task<'_>, counts: bool) -> Result<(Ran, Counted), String> {
        self.server.clear()?;
        let number = Number::new()?;
        let url = task.url.map_or_else(|| self.server.url(), str::to_owned);
        let share = |process: usize| (task.tasks + process) / task.processes;
        let start = |process: usize| {
            Running::start(task.contender, &url, task.scenario, share(process), task.seconds, Some(&number))
        };
        let mut running = (0..task.processes).map(start).collect::<Result<Vec<_>, _>>()?;
        let tap = counts.then(|| Tap::open(&self.server.address())).transpose()?;
        let before = self.server.seen();
        for process in &mut running {
            process.tell("go")?;
        }
        // A quick run does not wait long for one that hangs, unless it is ours.
        let hurry = self.args.quick && task.contender.is_peer();
        let patience = if hurry { task.patience.min(HURRY) } else { task.patience };
        let patience = patience + Duration::from_secs_f64(task.seconds);
        let said = running.iter().map(|process| process.said(patience)).collect::<Result<Vec<_>, _>>();
        let seen = self.server.seen().since(before);
        // The two looks at the server were commands too.
        let mut counted = tap.map(Tap::close).transpose()?.unwrap_or_default();
        counted.commands = counted.commands.saturating_sub(2);
        let said = said.map_err(|problem| match task.scenario {
            "counter" | "hold" => format!("{problem}; {} of {} had counted", number.read(), task.tasks),
            _ => problem,
        })?;
        if task.scenario == "pairs" {
            let failed: u64 = said.iter().map(|said| said.errors).sum();
            // Others may fail now and then, and are as slow as that makes them.
            if said.iter().any(|said| said.done == 0) || (failed > 0 && !task.contender.is_peer()) {
                return Err(format!("{failed} pairs failed, or none was done"));
            }
        }
        Ok((Ran { said, seen, counted: number.read() }, counted))
    }
}
