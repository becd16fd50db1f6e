//! One check in a process of its own, with a bug planted or without.

use std::{
    io::Read as _,
    panic::{self, AssertUnwindSafe},
    process::{Child, Command, ExitCode, Stdio},
    sync::mpsc,
    time::Duration,
};

use leasehold::planted::VARIABLE;
use leasehold_testkit::scripted::requests_in_all;

use crate::trials::{TRIALS, Trial};

/// What a child is started with, before the number of its trial.
pub(crate) const OPTION: &str = "--trial";

/// No check takes as long as this: one that does proves nothing.
const LIMIT: Duration = Duration::from_secs(100);

/// The dice of a child are those of every run.
const SEED: (&str, &str) = ("LEASEHOLD_SEED", "4");

/// Whether the bug is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    Yes,
    No,
}

/// How a check ended.
pub(crate) enum Ended {
    /// It found something, after so many requests to stores.
    Found { requests: u64, what: String },
    /// It found nothing in so many.
    Nothing { requests: u64 },
    /// What it needs is not installed, and may be missing.
    Skipped,
    /// Neither: that proves nothing.
    Oddly(String),
}

/// Runs a trial in a child.
pub(crate) fn run(number: usize, trial: &Trial, planted: Planted) -> Ended {
    match start(number, trial, planted).and_then(finish) {
        Ok(text) => read(&text),
        Err(error) => Ended::Oddly(error.to_string()),
    }
}

fn start(number: usize, trial: &Trial, planted: Planted) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([OPTION, &number.to_string()]).env(SEED.0, SEED.1).env_remove(VARIABLE);
    if planted == Planted::Yes {
        command.env(VARIABLE, trial.bug.name());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// What the child said, when it has ended by itself.
fn finish(mut child: Child) -> std::io::Result<String> {
    let mut output = child.stdout.take().ok_or_else(|| std::io::Error::other("it has no output"))?;
    let (said, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        drop(said.send(output.read_to_string(&mut text).map(|_| text)));
    });
    let text = heard.recv_timeout(LIMIT).unwrap_or_else(|_| {
        child.kill()?;
        Err(std::io::Error::other(format!("it did not end within {LIMIT:?}")))
    });
    child.wait()?;
    text
}

fn read(text: &str) -> Ended {
    let last = text.lines().last().unwrap_or_default();
    let words: Vec<&str> = last.splitn(3, ' ').collect();
    match (words.as_slice(), words.get(1).and_then(|word| word.parse().ok())) {
        (["found", _, what], Some(requests)) => Ended::Found { requests, what: (*what).to_owned() },
        (["nothing", _], Some(requests)) => Ended::Nothing { requests },
        (["skipped"], None) => Ended::Skipped,
        _ => Ended::Oddly(format!("it said {last:?}")),
    }
}

/// The child: runs its check and says in its last line how that ended.
pub(crate) fn main(number: &str) -> ExitCode {
    let trial = number.parse().ok().and_then(|number: usize| TRIALS.get(number));
    let Some(trial) = trial else { return ExitCode::from(64) };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| trial.check.run()));
    let requests = requests_in_all();
    match ended {
        Ok(true) => println!("nothing {requests}"),
        Ok(false) => println!("skipped"),
        Err(problem) => {
            let text = problem.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| problem.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            println!("found {requests} {}", text.lines().collect::<Vec<_>>().join(" / "));
        }
    }
    ExitCode::SUCCESS
}
